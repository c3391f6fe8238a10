#include "atunner/intake/bare/index_fills.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "atunner/intake/bare/index_arrays.h"
#include "atunner/intake/c_type.h"
#include "atunner/intake/cuda/structures.h"
#include "atunner/intake/expression_text.h"

namespace atunner {
namespace {

class IndexFiller {
 public:
  explicit IndexFiller(SourceReading& out) : out_(out) {}

  const ArgSpec* TensorOf(const std::string& name) const {
    const auto tensor = std::ranges::find(out_.tensors, name, &ArgSpec::name);
    return tensor == out_.tensors.end() ? nullptr : &*tensor;
  }

  /// The value of a factor (a number, a parameter or a constant of the source) as text; "" if it is
  /// unknown.
  std::string FactorText(const std::string& factor) const {
    const auto& parameters = out_.kernel->parameters;
    const auto parameter = std::ranges::find(parameters, factor, &KernelParameter::name);
    const auto index = static_cast<size_t>(parameter - parameters.begin());
    if (parameter != parameters.end())
      return out_.bindings[index].kind == ArgBinding::Kind::kScalar
                 ? out_.bindings[index].value.text()
                 : "";
    const FileConstant* constant = out_.syntax.FindConstant(factor);
    const auto value = LiteralOf(constant ? constant->value : factor);
    return value ? std::to_string(*value) : "";
  }

  /// Tensor elements per index: 4 for a float4* array.
  int LanesOf(const std::string& array) const {
    const auto& parameters = out_.kernel->parameters;
    const auto parameter = std::ranges::find(parameters, array, &KernelParameter::name);
    if (parameter == parameters.end()) return 1;
    const auto alias = out_.syntax.FindAlias(parameter->type);
    const std::string type = alias == out_.syntax.aliases.end() ? parameter->type : alias->second;
    auto known = ParseCType(type);
    if (!known) known = FloatsOf(out_.syntax, type);
    return known ? known->lanes : 1;
  }

  /// Number of valid values of an index that addresses the array so; "" if the array is not a
  /// tensor.
  std::string ValuesInto(const AddressedArray& use, bool offsets) const {
    const ArgSpec* tensor = TensorOf(use.array);
    if (tensor == nullptr) return "";
    std::string elements = "1";
    for (const Expr& extent : tensor->shape) elements += fmt::format(" * ({})", extent.text());
    if (const int lanes = LanesOf(use.array); lanes > 1)
      elements = fmt::format("({}) // {}", elements, lanes);
    const auto divisor = ProductOf(use.scale);
    if (!divisor) return "1";
    if (use.plus != 0) elements = fmt::format("max(0, {} - {})", elements, use.plus);
    if (!divisor->empty()) return fmt::format("({}) // ({})", elements, *divisor);
    const auto row = ProductOf(use.row);
    if (!row) return offsets ? elements : "1";
    return row->empty() || offsets ? elements : fmt::format("min({}, {})", elements, *row);
  }

  /// The product of factors as text, "" of none; nullopt if one of them is unknown.
  std::optional<std::string> ProductOf(const std::vector<std::string>& factors) const {
    std::string product;
    for (const std::string& factor : factors) {
      const std::string text = FactorText(factor);
      if (text.empty()) return std::nullopt;
      product += fmt::format("{}({})", product.empty() ? "" : " * ", text);
    }
    return product;
  }

  void Run() {
    for (const auto& [name, found] : FindIndexArrays(out_.syntax, *out_.kernel, OpenIntegers()))
      SetFill(name, found);
  }

  /// Integer inputs without a stated fill.
  std::vector<std::string> OpenIntegers() const {
    std::vector<std::string> integers;
    for (const ArgSpec& arg : out_.tensors) {
      const bool open = arg.fill.kind == Fill::Kind::kFamilies &&
                        !out_.stated.fills.contains(arg.name);
      if (open && arg.role != Role::kOutput && !IsFloat(arg.dtype) && arg.dtype != DType::kBool)
        integers.push_back(arg.name);
    }
    return integers;
  }

  /// Smallest value of the index array: 1 if the kernel addresses x[v - 1].
  static int64_t FirstOf(const IndexArray& found) {
    return found.into.empty() ? 0 : std::ranges::max(found.into, {}, &AddressedArray::minus).minus;
  }

  /// The end of the index array's values as an expression, valid for all arrays that it addresses,
  /// whose names are added to `arrays`; "" if it is unknown.
  std::string EndOf(const std::string& name, const IndexArray& found,
                    std::set<std::string>& arrays) const {
    std::string end;
    const int64_t first = FirstOf(found);
    for (const AddressedArray& use : found.into) {
      std::string values = ValuesInto(use, found.offsets);
      if (values.empty() || (found.offsets && use.array == name)) continue;
      if (use.minus < first) values = fmt::format("max(0, {} - {})", values, first - use.minus);
      end = end.empty() || end == values ? values : fmt::format("min({}, {})", end, values);
      arrays.insert("'" + use.array + "'");
    }
    if (end.empty() && found.offsets)
      end = ValuesInto({.array = name, .scale = {}, .row = {}}, true);
    return end;
  }

  void SetFill(const std::string& name, const IndexArray& found) {
    ArgSpec& arg = *std::ranges::find(out_.tensors, name, &ArgSpec::name);
    std::set<std::string> arrays;
    const std::string end = EndOf(name, found, arrays);
    const auto parsed = Expr::Parse(end);
    if (end.empty() || !parsed) return;
    for (const std::string& size : parsed->Names()) out_.used_in_sizes.insert(size);
    const int64_t first = FirstOf(found);
    arg.fill.kind = found.offsets ? Fill::Kind::kOffsets : Fill::Kind::kIndices;
    arg.fill.low = static_cast<double>(first);
    arg.fill.path = SizeOf(arg.dtype) < 4
                        ? fmt::format("min({}, {})", end, int64_t{1} << (8 * SizeOf(arg.dtype) - 1))
                        : end;
    out_.notes.push_back(
        fmt::format("'{}' is filled with {}{}{}; state another fill with // atunner: fill {} = …",
                    name, found.offsets ? "ascending offsets" : "indices",
                    first == 0 ? "" : fmt::format(" from {} on", first),
                    arrays.empty() ? "" : fmt::format(" of {}", fmt::join(arrays, " and ")), name));
  }

  SourceReading& out_;
};

}  // namespace

void FillIndexArrays(SourceReading& reading) { IndexFiller(reading).Run(); }

}  // namespace atunner
