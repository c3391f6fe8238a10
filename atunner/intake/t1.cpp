#include "atunner/intake/t1.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "atunner/intake/c_type.h"
#include "atunner/intake/value_list.h"

namespace atunner {
namespace {

using nlohmann::json;

/// Text of a number or a string: T1 writes expressions as either.
std::optional<std::string> TextOf(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return std::nullopt;
}

void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

class Reader {
 public:
  Reader(const json& root, std::string where, const FileReader& read)
      : root_(root), where_(std::move(where)), read_(read) {}

  Result<UserKernel> Run() {
    ATUNNER_RETURN_IF_ERROR(Space());
    ATUNNER_RETURN_IF_ERROR(Kernel());
    ATUNNER_RETURN_IF_ERROR(Arguments());
    ATUNNER_RETURN_IF_ERROR(Launch());
    return std::move(kernel_);
  }

 private:
  std::unexpected<Error> Bad(const std::string& key, const std::string& what, const std::string& hint = "") const {
    return Invalid(what, where_ + ": " + key, hint);
  }
  static const json& At(const json& object, const char* key) {
    static const json none;
    if (!object.is_object()) return none;
    const auto found = object.find(key);
    return found == object.end() ? none : *found;
  }
  Result<std::string> Text(const json& object, const char* key, const std::string& path) const {
    const json& value = At(object, key);
    if (!value.is_string()) return Bad(path + "." + key, "missing, or not a text");
    return value.get<std::string>();
  }

  Status Space() {
    const json& space = At(root_, "ConfigurationSpace");
    const json& parameters = At(space, "TuningParameters");
    if (!parameters.is_array()) return Bad("ConfigurationSpace.TuningParameters", "missing, or not a list");
    for (const json& each : parameters) ATUNNER_RETURN_IF_ERROR(OneParameter(each));
    const json& conditions = At(space, "Conditions");
    if (!conditions.is_array() && !conditions.is_null()) return Bad("ConfigurationSpace.Conditions", "not a list");
    for (const json& each : conditions) {
      const auto text = TextOf(At(each, "Expression"));
      if (!text) return Bad("ConfigurationSpace.Conditions", "a condition without an Expression");
      auto condition = Expr::Parse(*text);
      if (!condition) return Bad("ConfigurationSpace.Conditions", condition.error().ToString());
      kernel_.space.constraints.push_back({*std::move(condition), ""});
    }
    return {};
  }

  Status OneParameter(const json& each) {
    Parameter parameter;
    ATUNNER_TRY(parameter.name, Text(each, "Name", "ConfigurationSpace.TuningParameters[]"));
    const std::string path = "ConfigurationSpace.TuningParameters." + parameter.name;
    const json& values = At(each, "Values");
    if (!values.is_string() && !values.is_array())
      return Bad(path + ".Values", "missing, or neither a list nor a text");
    auto parsed = ParseValueList(values.is_string() ? values.get<std::string>() : values.dump());
    if (!parsed) return Bad(path + ".Values", parsed.error().what, parsed.error().hint);
    if (parsed->empty()) return Bad(path + ".Values", "an empty list");
    for (const Value& value : *parsed) {
      if (std::ranges::find(parameter.values, value) == parameter.values.end()) parameter.values.push_back(value);
    }
    Value initial = parameter.values.front();
    if (const json& stated = At(each, "Default"); !stated.is_null()) {
      const auto text = TextOf(stated);
      auto expr = Expr::Parse(text.value_or(""));
      auto value = expr ? expr->Evaluate({}) : Result<Value>(std::unexpected(expr.error()));
      initial = value ? *value : Value(text.value_or(""));
    }
    kernel_.initial.values.push_back(std::move(initial));
    kernel_.injections.push_back({});
    kernel_.space.parameters.push_back(std::move(parameter));
    return {};
  }

  Status Kernel() {
    const json& spec = At(root_, "KernelSpecification");
    if (!spec.is_object()) return Bad("KernelSpecification", "missing");
    if (const json& language = At(spec, "Language"); language.is_string() && language != "CUDA")
      return Bad("KernelSpecification.Language", "'" + language.get<std::string>() + "' is not CUDA");
    ATUNNER_TRY(kernel_.spec.name, Text(spec, "KernelName", "KernelSpecification"));
    ATUNNER_TRY(kernel_.source.name, Text(spec, "KernelFile", "KernelSpecification"));
    auto text = read_(kernel_.source.name);
    if (!text) return Bad("KernelSpecification.KernelFile", text.error().ToString());
    kernel_.source.text = *std::move(text);
    // What Kernel Tuner defines for every kernel.
    kernel_.source.defines.emplace_back("kernel_tuner", "1");
    for (const json& option : At(spec, "CompilerOptions")) {
      if (option.is_string()) kernel_.source.options.push_back(option.get<std::string>());
    }
    return ProblemSize(At(spec, "ProblemSize"));
  }

  Status ProblemSize(const json& stated) {
    if (stated.is_null()) return {};
    const json list = stated.is_array() ? stated : json::array({stated});
    for (const json& each : list) {
      const auto text = TextOf(each);
      auto expr = Expr::Parse(text.value_or(""));
      if (!expr) return Bad("KernelSpecification.ProblemSize", expr.error().ToString());
      auto size = expr->EvaluateInt({});
      if (!size || *size < 1) return Bad("KernelSpecification.ProblemSize", "'" + *text + "' is no size");
      problem_.push_back(*size);
    }
    return {};
  }

  /// Size expressions see the parameters as lists, as Kernel Tuner does: max(filter_width).
  Result<int64_t> Size(const json& stated, const std::string& path) const {
    auto text = TextOf(stated);
    if (!text) return Bad(path, "missing");
    for (size_t i = 0; i < problem_.size(); ++i)
      ReplaceAll(*text, fmt::format("ProblemSize[{}]", i), std::to_string(problem_[i]));
    std::vector<std::string> names;
    std::vector<Value> largest;
    for (const Parameter& parameter : kernel_.space.parameters) {
      const auto [low, high] = std::ranges::minmax_element(parameter.values, {}, ToDouble);
      ReplaceAll(*text, "max(" + parameter.name + ")", ToString(*high));
      ReplaceAll(*text, "min(" + parameter.name + ")", ToString(*low));
      names.push_back(parameter.name);
      largest.push_back(*high);
    }
    auto expr = Expr::Parse(*text);
    if (!expr) return Bad(path, expr.error().ToString());
    auto size = expr->EvaluateInt(Bindings().Add(names, largest));
    if (!size) return Bad(path, size.error().ToString());
    if (*size < 1) return Bad(path, fmt::format("a size of {}", *size));
    return *size;
  }

  Status Arguments() {
    const json& list = At(At(root_, "KernelSpecification"), "Arguments");
    if (!list.is_array() || list.empty()) {
      return Bad("KernelSpecification.Arguments", "no arguments are listed",
                 "add one entry per parameter of kernel '" + kernel_.spec.name +
                     "': Name, Type, MemoryType, AccessType, Size");
    }
    for (const json& each : list) ATUNNER_RETURN_IF_ERROR(OneArgument(each));
    // Where outputs are marked, writable buffers without the mark are scratch to whoever wrote the file; they are
    // compared all the same.
    return {};
  }

  Status OneArgument(const json& each) {
    ArgSpec arg;
    ATUNNER_TRY(arg.name, Text(each, "Name", "KernelSpecification.Arguments[]"));
    const std::string path = "KernelSpecification.Arguments." + arg.name;
    ATUNNER_TRY(const std::string type_name, Text(each, "Type", path.substr(0, path.size())));
    const auto type = ParseCType(type_name);
    if (!type) return Bad(path + ".Type", "unknown type '" + type_name + "'", "use " + DTypeNames());
    arg.dtype = type->dtype;
    if (At(each, "MemoryType") == "Scalar") return Scalar(each, std::move(arg), path);
    ATUNNER_TRY(const int64_t elements, Size(At(each, "Size"), path + ".Size"));
    arg.shape = {Expr(elements * type->lanes)};
    const json& access = At(each, "AccessType");
    arg.role = access == "WriteOnly" ? Role::kOutput : access == "ReadWrite" ? Role::kInOut : Role::kInput;
    if (arg.role == Role::kInput && At(each, "Output") == 1) arg.role = Role::kInOut;
    ATUNNER_RETURN_IF_ERROR(SetFill(each, arg, path));
    if (At(each, "MemType") == "Constant") {
      kernel_.plan.symbols.push_back({arg.name, arg.name});
    } else {
      bindings_.push_back(ArgBinding::Tensor(arg.name));
    }
    kernel_.spec.args.push_back(std::move(arg));
    return {};
  }

  Status Scalar(const json& each, ArgSpec arg, const std::string& path) {
    const auto text = TextOf(At(each, "FillValue"));
    if (!text) return Bad(path + ".FillValue", "missing", "a scalar needs its value");
    auto value = Expr::Parse(*text);
    if (!value) return Bad(path + ".FillValue", value.error().ToString());
    bindings_.push_back(ArgBinding::Scalar(arg.dtype, *value));
    arg.role = Role::kScalar;
    arg.value = *std::move(value);
    kernel_.spec.args.push_back(std::move(arg));
    return {};
  }

  Status SetFill(const json& each, ArgSpec& arg, const std::string& path) const {
    const json& kind = At(each, "FillType");
    const json& value = At(each, "FillValue");
    const double number = value.is_number() ? value.get<double>() : 1.0;
    if (kind == "Constant") {
      arg.fill = {.kind = Fill::Kind::kConstant, .low = number, .high = number, .path = {}};
    } else if (kind == "Random" || kind.is_null()) {
      // As the KTT loader reads it: uniform from zero up to FillValue.
      arg.fill = {.kind = Fill::Kind::kUniform, .low = 0, .high = number > 0 ? number : 1.0, .path = {}};
    } else if (kind == "BinaryRaw") {
      const auto source = TextOf(At(each, "DataSource"));
      if (!source) return Bad(path + ".DataSource", "missing", "name the raw file");
      arg.fill = {.kind = Fill::Kind::kFile, .low = 0, .high = 1, .path = *source};
    } else if (kind == "Generator" && At(each, "DataSource") == "i") {
      arg.fill = {.kind = Fill::Kind::kIota, .low = 0, .high = 1, .path = {}};
    } else {
      return Bad(path + ".FillType", kind.dump() + " is not supported",
                 "use Constant, Random, BinaryRaw, or Generator with DataSource \"i\"");
    }
    return {};
  }

  Result<Expr> Expression(const json& stated, const std::string& path) const {
    const auto text = TextOf(stated);
    if (!text) return Bad(path, "missing, or neither a number nor a text");
    auto expr = Expr::Parse(*text);
    if (!expr) return Bad(path, expr.error().ToString());
    return *std::move(expr);
  }

  Status Launch() {
    const json& spec = At(root_, "KernelSpecification");
    LaunchStep step;
    step.entry = kernel_.spec.name;
    step.args = std::move(bindings_);
    constexpr const char* kAxes[] = {"X", "Y", "Z"};
    for (size_t i = 0; i < 3; ++i) {
      if (const json& size = At(At(spec, "LocalSize"), kAxes[i]); !size.is_null()) {
        ATUNNER_TRY(step.block[i], Expression(size, fmt::format("KernelSpecification.LocalSize.{}", kAxes[i])));
      } else if (i == 0) {
        return Bad("KernelSpecification.LocalSize.X", "missing");
      }
      ATUNNER_RETURN_IF_ERROR(GridAxis(spec, i, kAxes[i], step));
    }
    if (const json& shared = At(spec, "SharedMemory"); !shared.is_null()) {
      ATUNNER_TRY(step.shared_bytes, Expression(shared, "KernelSpecification.SharedMemory"));
    }
    kernel_.plan.steps.push_back(std::move(step));
    kernel_.spec.bytes = Expr(0);  // buffers may be larger than what the kernel touches: no floor can be claimed
    return {};
  }

  /// Kernel Tuner divides ProblemSize by the GridDiv products (the block's size without them). Without a ProblemSize
  /// the GlobalSize counts blocks, or threads when its type is OpenCL.
  Status GridAxis(const json& spec, size_t i, const std::string& axis, LaunchStep& step) const {
    if (!problem_.empty()) {
      if (i >= problem_.size()) return {};
      std::string divisor;
      if (const json& divisors = At(spec, ("GridDiv" + axis).c_str()); divisors.is_array()) {
        for (const json& each : divisors) divisor += (divisor.empty() ? "(" : " * (") + TextOf(each).value_or("") + ")";
      } else {
        divisor = step.block[i].text();
      }
      if (divisor.empty()) divisor = "1";
      auto grid = Expr::Parse(fmt::format("ceil_div({}, {})", problem_[i], divisor));
      if (!grid) return Bad("KernelSpecification.GridDiv" + axis, grid.error().ToString());
      step.grid[i] = *std::move(grid);
      return {};
    }
    const json& size = At(At(spec, "GlobalSize"), axis.c_str());
    if (size.is_null())
      return i == 0 ? Status(Bad("KernelSpecification.GlobalSize.X", "missing, and no ProblemSize")) : Status();
    ATUNNER_TRY(step.grid[i], Expression(size, "KernelSpecification.GlobalSize." + axis));
    if (At(spec, "GlobalSizeType") == "OpenCL")
      step.grid[i] = Expr::MustParse(fmt::format("ceil_div({}, {})", step.grid[i].text(), step.block[i].text()));
    return {};
  }

  const json& root_;
  std::string where_;
  const FileReader& read_;
  UserKernel kernel_;
  std::vector<int64_t> problem_;
  std::vector<ArgBinding> bindings_;
};

}  // namespace

Result<UserKernel> ParseT1(std::string_view text, const std::string& where, const FileReader& read) {
  const json root = json::parse(text, nullptr, false, true);
  if (root.is_discarded()) return Invalid("not valid JSON", where, "check commas and quotes");
  return Reader(root, where, read).Run();
}

}  // namespace atunner
