#include "atunner/intake/described/t1_argument.h"

#include <fmt/format.h>

#include <cmath>

#include "atunner/intake/c_type.h"
#include "atunner/model/kernel/exact_fill.h"

namespace atunner::t1 {
namespace {

constexpr int64_t kLargestCustomType = 65536;

/// OpenCL's vector types "half4", "float8", "double16", some of which CUDA does not have.
std::optional<CType> WideType(std::string_view name) {
  constexpr std::pair<std::string_view, DType> kBases[] = {
      {"half", DType::kFloat16}, {"float", DType::kFloat32}, {"double", DType::kFloat64}};
  for (const auto& [base, dtype] : kBases) {
    if (!name.starts_with(base)) continue;
    for (const int lanes : {2, 4, 8, 16}) {
      if (name.substr(base.size()) == std::to_string(lanes)) return CType{dtype, lanes};
    }
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(const Scope& scope, const json& stated, size_t number) : scope_(scope), stated_(stated) {
    const json& name = At(stated, "Name");
    out_.spec.name = name.is_string() ? name.get<std::string>() : fmt::format("argument{}", number);
    path_ = "KernelSpecification.Arguments." + out_.spec.name;
  }

  Result<Argument> Run() {
    ATUNNER_RETURN_IF_ERROR(Type());
    ATUNNER_TRY(const std::string memory, Memory());
    if (memory == "Scalar") {
      ATUNNER_RETURN_IF_ERROR(Scalar());
    } else if (memory == "Local") {
      ATUNNER_RETURN_IF_ERROR(Shared());
    } else {
      ATUNNER_RETURN_IF_ERROR(Vector());
      if (memory == "Constant") out_.place = Argument::Place::kSymbol;
    }
    return std::move(out_);
  }

 private:
  std::unexpected<Error> Bad(const char* key, const std::string& what,
                             const std::string& hint = "") const {
    return scope_.Bad(path_ + "." + key, what, hint);
  }

  Status Type() {
    const json& stated = At(stated_, "Type");
    if (!stated.is_string()) return Bad("Type", "missing, or not a text");
    const auto name = stated.get<std::string>();
    if (name == "custom") return CustomType();
    const auto type = WideType(name) ? WideType(name) : ParseCType(name);
    if (!type) return Bad("Type", "unknown type '" + name + "'", "use " + DTypeNames());
    if (name == "float16")
      out_.note = "'" + out_.spec.name +
                  "': T1's float16 is a vector of 16 floats; half precision is 'half'";
    out_.spec.dtype = type->dtype;
    lanes_ = type->lanes;
    return {};
  }

  /// A structure is passed as bytes and compared byte by byte.
  Status CustomType() {
    const json& size = At(stated_, "TypeSize");
    if (!size.is_number_integer() || size.get<int64_t>() < 1 ||
        size.get<int64_t>() > kLargestCustomType)
      return Bad("TypeSize", "missing, or no size", "a custom type needs its size in bytes");
    out_.spec.dtype = DType::kUInt8;
    lanes_ = size.get<int64_t>();
    custom_ = true;
    return {};
  }

  /// "Scalar", "Vector", "Local" or "Constant". Kernel Tuner marks constants in MemType, KTT in
  /// MemoryType.
  Result<std::string> Memory() const {
    const json& kind = At(stated_, "MemType");
    if (kind == "Constant") return "Constant";
    if (!kind.is_null() && kind != "Global") {
      return Bad("MemType", kind.dump() + " is not supported",
                 "there are Global and Constant; read textures through plain memory");
    }
    const json& memory = At(stated_, "MemoryType");
    if (memory.is_null()) return At(stated_, "Size").is_null() ? "Scalar" : "Vector";
    for (const char* known : {"Scalar", "Vector", "Local", "Constant"}) {
      if (memory == known) return known;
    }
    if (memory == "Symbol") return "Constant";
    return Bad(
        "MemoryType", memory.dump() + " is not supported",
        "there are Scalar, Vector, Constant, Symbol and Local; read textures through plain memory");
  }

  Status Scalar() {
    if (lanes_ != 1)
      return Bad("Type", "a scalar of a vector or custom type is not supported", "pass its parts");
    if (At(stated_, "FillValue").is_null())
      return Bad("FillValue", "missing", "a scalar needs its value");
    ATUNNER_TRY(Expr value, scope_.Parse(At(stated_, "FillValue"), path_ + ".FillValue"));
    std::vector<Value> only;
    for (const Parameter& parameter : scope_.space.parameters)
      only.push_back(parameter.values.front());
    const auto names = scope_.space.Names();
    for (const std::string& name : value.Names()) {
      const int at = scope_.space.Find(name);
      if (at >= 0 && scope_.space.parameters[static_cast<size_t>(at)].values.size() > 1)
        return Bad("FillValue", "'" + name + "' varies", "the kernel knows it as a macro");
    }
    auto known = value.Evaluate(Bindings().Add(names, only));
    if (!known) return Bad("FillValue", known.error().ToString());
    if (!std::isfinite(ToDouble(*known)))
      return Bad("FillValue", "'" + ToString(*known) + "' is not a number");
    ATUNNER_TRY(value, Expr::Parse(ToString(*known)));
    out_.spec.role = Role::kScalar;
    out_.spec.value = std::move(value);
    return {};
  }

  Status Shared() {
    ATUNNER_TRY(const Expr elements, scope_.Parse(At(stated_, "Size"), path_ + ".Size"));
    out_.place = Argument::Place::kShared;
    ATUNNER_TRY(out_.shared_bytes,
                Expr::Parse(fmt::format("({}) * {}", elements.text(),
                                        lanes_ * static_cast<int64_t>(SizeOf(out_.spec.dtype)))));
    return {};
  }

  Status Vector() {
    ATUNNER_TRY(const int64_t elements, scope_.Size(At(stated_, "Size"), path_ + ".Size"));
    int64_t extent = 0;
    if (__builtin_mul_overflow(elements, lanes_, &extent)) return Bad("Size", "too large");
    out_.spec.shape = {Expr(extent)};
    const json& access = At(stated_, "AccessType");
    const json& output = At(stated_, "Output");
    const bool marked = output == 1 || output == true;
    if (access == "WriteOnly") {
      out_.spec.role = Role::kOutput;
    } else if (access == "ReadWrite" || marked) {
      out_.spec.role = Role::kInOut;
    } else if (access.is_null() || access == "ReadOnly") {
      out_.spec.role = Role::kInput;
    } else {
      return Bad("AccessType", access.dump() + " is unknown",
                 "there are ReadOnly, WriteOnly and ReadWrite");
    }
    return SetFill();
  }

  Result<double> FillNumber(double otherwise) const {
    const json& stated = At(stated_, "FillValue");
    if (stated.is_null()) return otherwise;
    ATUNNER_TRY(const Expr expr, scope_.Parse(stated, path_ + ".FillValue"));
    auto value = expr.Evaluate({});
    if (!value) return Bad("FillValue", value.error().ToString());
    const double number = ToDouble(*value);
    if (!std::isfinite(number))
      return Bad("FillValue", "'" + ToString(*value) + "' is not a number");
    return number;
  }

  Status SetFill() {
    const json& kind = At(stated_, "FillType");
    if (kind == "Random" || kind.is_null()) return SetRandom();
    if (kind == "BinaryRaw" || kind == "Generator") return SetSource(kind == "Generator");
    if (kind != "Constant")
      return Bad("FillType", kind.dump() + " is not supported",
                 "use Constant, Random, BinaryRaw or Generator");
    Fill& fill = out_.spec.fill;
    ATUNNER_TRY(fill.low, FillNumber(0));
    fill.high = fill.low;
    fill.kind = Fill::Kind::kConstant;
    if (custom_) PromiseExactly(fill);  // other bytes may be no value of the type
    return {};
  }

  /// Random values from zero to FillValue like KTT's, which includes FillValue for integers.
  Status SetRandom() {
    if (custom_ && out_.spec.role != Role::kOutput)
      return Bad("FillType", "random bytes are no value of a custom type",
                 "use BinaryRaw or Constant");
    Fill& fill = out_.spec.fill;
    ATUNNER_TRY(fill.high, FillNumber(1));
    if (!(fill.high > 0)) fill.high = 1;
    if (!IsFloat(out_.spec.dtype)) fill.high += 1;
    fill.low = 0;
    fill.kind = Fill::Kind::kUniform;
    return {};
  }

  Status SetSource(bool generator) {
    const json& source = At(stated_, "DataSource");
    if (!source.is_string())
      return Bad("DataSource", "missing",
                 generator ? "give an expression of i" : "name the raw file");
    Fill& fill = out_.spec.fill;
    fill.path = source.get<std::string>();
    fill.kind = generator ? Fill::Kind::kGenerator : Fill::Kind::kFile;
    if (!generator) return {};
    ATUNNER_TRY(const Expr expr, scope_.Parse(source, path_ + ".DataSource"));
    for (const std::string& name : expr.Names()) {
      if (name != "i")
        return Bad("DataSource", "unknown name '" + name + "'", "a generator knows the index i");
    }
    fill.path = expr.text();
    return {};
  }

  const Scope& scope_;
  const json& stated_;
  std::string path_;
  Argument out_;
  int64_t lanes_ = 1;
  bool custom_ = false;
};

}  // namespace

Result<Argument> ReadArgument(const Scope& scope, const json& stated, size_t number) {
  return Reader(scope, stated, number).Run();
}

}  // namespace atunner::t1
