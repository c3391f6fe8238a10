#include "atunner/intake/described/t1.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "atunner/intake/c_type.h"
#include "atunner/intake/check_sizes.h"
#include "atunner/intake/cuda/cuda_syntax.h"
#include "atunner/intake/cuda/kernel_body.h"
#include "atunner/intake/described/t1_argument.h"
#include "atunner/intake/described/t1_json.h"
#include "atunner/intake/described/t1_sizes.h"
#include "atunner/intake/rewrite/source_headers.h"
#include "atunner/intake/value_list.h"
#include "atunner/model/kernel/exact_fill.h"

namespace atunner {
namespace {

using t1::At;
using t1::json;
using t1::TextOf;

bool IsIdentifierStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool IsIdentifierPart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// All identifiers of a text, including those in macros and comments.
std::set<std::string_view> Words(std::string_view text) {
  std::set<std::string_view> words;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    while (end < text.size() && IsIdentifierPart(text[i]) && IsIdentifierPart(text[end])) ++end;
    if (IsIdentifierStart(text[i])) words.insert(text.substr(i, end - i));
    i = end;
  }
  return words;
}

/// Puts parameters of a template kernel's name in braces, since NVRTC's name expressions do not see
/// macros: "kernel<block_size_x, float>" -> "kernel<{block_size_x}, float>".
std::string EntryOf(const std::string& name, const ParameterSpace& space) {
  const size_t open = name.find('<');
  if (open == std::string::npos) return name;
  std::string entry = name.substr(0, open);
  for (size_t i = open; i < name.size();) {
    size_t end = i + 1;
    if (IsIdentifierStart(name[i])) {
      while (end < name.size() && IsIdentifierPart(name[end])) ++end;
    }
    const std::string word = name.substr(i, end - i);
    entry += space.Find(word) >= 0 ? "{" + word + "}" : word;
    i = end;
  }
  return entry;
}

class Reader {
 public:
  Reader(const json& root, std::string where, const FileReader& read) : root_(root), read_(read) {
    scope_.where = std::move(where);
  }

  Result<UserKernel> Run() {
    ATUNNER_RETURN_IF_ERROR(Space());
    ATUNNER_RETURN_IF_ERROR(Kernel());
    ATUNNER_RETURN_IF_ERROR(ProblemSize());
    ATUNNER_RETURN_IF_ERROR(Arguments());
    ATUNNER_RETURN_IF_ERROR(Launch());
    ATUNNER_RETURN_IF_ERROR(CompareWithSource());
    ATUNNER_RETURN_IF_ERROR(Reference());
    kernel_.space = std::move(scope_.space);
    t1::NameProblemSizes(kernel_, scope_.problem);
    kernel_.check_dims = HalvedCheckSizes(kernel_, FreeSizesOf(kernel_));
    return std::move(kernel_);
  }

 private:
  std::unexpected<Error> Bad(const std::string& key, const std::string& what,
                             const std::string& hint = "") const {
    return scope_.Bad(key, what, hint);
  }
  Result<std::string> Text(const json& object, const char* key, const std::string& path) const {
    const json& value = At(object, key);
    if (!value.is_string()) return Bad(path + "." + key, "missing, or not a text");
    return value.get<std::string>();
  }

  Status Space() {
    const json& space = At(root_, "ConfigurationSpace");
    const json& parameters = At(space, "TuningParameters");
    if (!parameters.is_array())
      return Bad("ConfigurationSpace.TuningParameters", "missing, or not a list");
    for (const json& each : parameters) ATUNNER_RETURN_IF_ERROR(OneParameter(each));
    const json& conditions = At(space, "Conditions");
    if (!conditions.is_array() && !conditions.is_null())
      return Bad("ConfigurationSpace.Conditions", "not a list");
    for (const json& each : conditions) {
      const auto text = TextOf(At(each, "Expression"));
      if (!text) return Bad("ConfigurationSpace.Conditions", "a condition without an Expression");
      auto condition = Expr::Parse(*text);
      if (!condition) return Bad("ConfigurationSpace.Conditions", condition.error().ToString());
      scope_.space.constraints.push_back({*std::move(condition), ""});
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
      if (std::ranges::find(parameter.values, value) == parameter.values.end())
        parameter.values.push_back(value);
    }
    kernel_.initial.values.push_back(DefaultOf(At(each, "Default"), parameter));
    kernel_.injections.push_back({});
    scope_.space.parameters.push_back(std::move(parameter));
    return {};
  }

  /// The default value. Some published files write it as a list of one value.
  static Value DefaultOf(const json& stated, const Parameter& parameter) {
    const auto text = TextOf(stated.is_array() && !stated.empty() ? stated.front() : stated);
    if (!text) return parameter.values.front();
    const auto expr = Expr::Parse(*text);
    const auto value = expr ? expr->Evaluate({}) : Result<Value>(std::unexpected(expr.error()));
    return value ? *value : Value(*text);
  }

  /// Accepts CUDA and Kernel Tuner's names of its CUDA backends.
  Status CheckLanguage(const json& spec) const {
    const json& language = At(spec, "Language");
    if (!language.is_string()) return {};
    const auto name = language.get<std::string>();
    const auto same = [&](const char* known) { return t1::EqualsIgnoringCase(name, known); };
    if (same("CUDA") || same("CUPY") || same("NVCUDA")) return {};
    return Bad("KernelSpecification.Language", "'" + name + "' is not CUDA");
  }

  Status Kernel() {
    const json& spec = At(root_, "KernelSpecification");
    if (!spec.is_object()) return Bad("KernelSpecification", "missing");
    ATUNNER_RETURN_IF_ERROR(CheckLanguage(spec));
    ATUNNER_TRY(const std::string name, Text(spec, "KernelName", "KernelSpecification"));
    kernel_.spec.name = name.substr(0, name.find('<'));
    ATUNNER_TRY(kernel_.source.name, Text(spec, "KernelFile", "KernelSpecification"));
    auto text = read_(kernel_.source.name);
    if (!text) return Bad("KernelSpecification.KernelFile", text.error().ToString());
    // Kernel Tuner defines this macro for every kernel.
    kernel_.source.defines.emplace_back("kernel_tuner", "1");
    const json& options = At(spec, "CompilerOptions");
    for (const json& option : options.is_string() ? json::array({options}) : options) {
      if (option.is_string() && option != "")
        kernel_.source.options.push_back(option.get<std::string>());
    }
    kernel_.source.text = CompilableText(
        ParseCuda(WithHeaders(*text, kernel_.source.name, read_, kernel_.source.options)));
    DefineBenchmarkConfig();
    return {};
  }

  /// Defines the entries of BenchmarkConfig that the source's #if conditions use. BAT defines all
  /// of them, but another name (`N`, `iterations`) may be a variable of the kernel.
  void DefineBenchmarkConfig() {
    const CudaSyntax syntax = ParseCuda(kernel_.source.text);
    std::set<std::string_view> asked;
    for (const Token& token : syntax.lexed.tokens) {
      const bool condition = token.kind == Token::Kind::kDirective && token.text.contains("if");
      if (condition) asked.merge(Words(token.text));
    }
    const json& config = At(root_, "BenchmarkConfig");
    for (const auto& [name, value] : config.items()) {
      const auto text = TextOf(value);
      if (!text || !asked.contains(name) || scope_.space.Find(name) >= 0 ||
          syntax.FindConstant(name))
        continue;
      kernel_.source.defines.emplace_back(name, *text);
    }
  }

  Status ProblemSize() {
    const json& stated = At(At(root_, "KernelSpecification"), "ProblemSize");
    if (stated.is_null()) return {};
    const std::string path = "KernelSpecification.ProblemSize";
    const json list = stated.is_array() ? stated : json::array({stated});
    for (const json& each : list) {
      ATUNNER_RETURN_IF_ERROR(scope_.Size(each, path));
      scope_.problem.push_back(scope_.Substituted(*TextOf(each)));
    }
    if (list.empty() || list.size() > 3) return Bad(path, "one to three sizes are needed");
    return {};
  }

  Status Arguments() {
    const json& list = At(At(root_, "KernelSpecification"), "Arguments");
    if (!list.is_array() || list.empty()) {
      return Bad("KernelSpecification.Arguments", "no arguments are listed",
                 "add one entry per parameter of kernel '" + kernel_.spec.name +
                     "': Name, Type, MemoryType, AccessType, Size");
    }
    // A writable buffer without the output mark is probably scratch, but it is compared too.
    for (const json& each : list) {
      ATUNNER_TRY(t1::Argument argument, t1::ReadArgument(scope_, each, kernel_.spec.args.size()));
      if (!argument.note.empty()) kernel_.notes.push_back(argument.note);
      ATUNNER_RETURN_IF_ERROR(Place(std::move(argument)));
    }
    return {};
  }

  static ArgBinding BindingOf(const ArgSpec& spec) {
    return spec.role == Role::kScalar ? ArgBinding::Scalar(spec.dtype, *spec.value)
                                      : ArgBinding::Tensor(spec.name);
  }

  Status Place(t1::Argument argument) {
    using enum t1::Argument::Place;
    ArgSpec& spec = argument.spec;
    const std::string path = "KernelSpecification.Arguments." + spec.name;
    if (kernel_.spec.FindArg(spec.name) != nullptr)
      return Bad(path, "a second argument of this name");
    if (argument.place == kShared) {
      ATUNNER_TRY(step_.shared_bytes,
                  Expr::Parse(step_.shared_bytes.text() + " + " + argument.shared_bytes.text()));
      return {};
    }
    if (argument.place == kSymbol) {
      if (kernel_.source.text.find(spec.name) == std::string::npos &&
          kernel_.source.text.find("#include") == std::string::npos) {
        return Bad(path, "'" + kernel_.source.name + "' has no symbol of this name",
                   "name the argument as the __constant__ variable that it fills");
      }
      kernel_.plan.symbols.push_back({spec.name, spec.name});
    } else {
      step_.args.push_back(BindingOf(spec));
    }
    kernel_.spec.args.push_back(std::move(spec));
    return {};
  }

  Status Launch() {
    const json& spec = At(root_, "KernelSpecification");
    step_.entry = EntryOf(At(spec, "KernelName").get<std::string>(), scope_.space);
    constexpr const char* kAxes[] = {"X", "Y", "Z"};
    for (size_t i = 0; i < 3; ++i) {
      if (const json& size = At(At(spec, "LocalSize"), kAxes[i]); !size.is_null()) {
        ATUNNER_TRY(step_.block[i],
                    scope_.Parse(size, fmt::format("KernelSpecification.LocalSize.{}", kAxes[i])));
      } else if (i == 0) {
        return Bad("KernelSpecification.LocalSize.X", "missing");
      }
      ATUNNER_RETURN_IF_ERROR(GridAxis(spec, i, kAxes[i]));
    }
    if (const json& shared = At(spec, "SharedMemory"); !shared.is_null()) {
      ATUNNER_TRY(const Expr bytes, scope_.Parse(shared, "KernelSpecification.SharedMemory"));
      ATUNNER_TRY(step_.shared_bytes,
                  Expr::Parse("(" + bytes.text() + ") + " + step_.shared_bytes.text()));
    }
    kernel_.plan.steps.push_back(std::move(step_));
    // Buffers may be larger than the part that the kernel touches, so no minimum traffic is
    // claimed.
    kernel_.spec.bytes = Expr(0);
    return {};
  }

  /// Sets a grid extent. Kernel Tuner divides ProblemSize by the product of GridDiv, or by the
  /// block size if there is none. Without a ProblemSize the GlobalSize counts blocks, or threads if
  /// its type is OpenCL; so does one that depends on parameters where nothing divides ProblemSize.
  Status GridAxis(const json& spec, size_t i, const std::string& axis) {
    const bool divided = !At(spec, ("GridDiv" + axis).c_str()).is_null();
    const bool global = !divided && DependsOnParameters(At(At(spec, "GlobalSize"), axis.c_str()));
    return scope_.problem.empty() || global ? GlobalGrid(spec, i, axis)
           : i < scope_.problem.size()      ? DividedGrid(spec, i, axis)
                                            : Status();
  }

  bool DependsOnParameters(const json& size) const {
    if (size.is_null()) return false;
    const auto parsed = scope_.Parse(size, "KernelSpecification.GlobalSize");
    if (!parsed) return false;
    const std::vector<std::string> names = parsed->Names();
    return std::ranges::any_of(scope_.space.parameters, [&](const Parameter& parameter) {
      return std::ranges::find(names, parameter.name) != names.end();
    });
  }

  Status DividedGrid(const json& spec, size_t i, const std::string& axis) {
    std::string divisor;
    if (const json& divisors = At(spec, ("GridDiv" + axis).c_str()); divisors.is_array()) {
      for (const json& each : divisors)
        divisor += (divisor.empty() ? "(" : " * (") + TextOf(each).value_or("") + ")";
    } else {
      divisor = step_.block[i].text();
    }
    if (divisor.empty()) divisor = "1";
    auto grid = Expr::Parse(fmt::format("ceil_div({}, {})", scope_.problem[i], divisor));
    if (!grid) return Bad("KernelSpecification.GridDiv" + axis, grid.error().ToString());
    step_.grid[i] = *std::move(grid);
    return {};
  }

  Status GlobalGrid(const json& spec, size_t i, const std::string& axis) {
    const json& size = At(At(spec, "GlobalSize"), axis.c_str());
    if (size.is_null())
      return i == 0 ? Status(Bad("KernelSpecification.GlobalSize.X", "missing, and no ProblemSize"))
                    : Status();
    ATUNNER_TRY(step_.grid[i], scope_.Parse(size, "KernelSpecification.GlobalSize." + axis));
    const std::string type = TextOf(At(spec, "GlobalSizeType")).value_or("CUDA");
    if (t1::EqualsIgnoringCase(type, "OpenCL")) {
      ATUNNER_TRY(step_.grid[i], Expr::Parse(fmt::format("ceil_div({}, {})", step_.grid[i].text(),
                                                         step_.block[i].text())));
    } else if (!t1::EqualsIgnoringCase(type, "CUDA") && !t1::EqualsIgnoringCase(type, "Vulkan")) {
      return Bad("KernelSpecification.GlobalSizeType", "'" + type + "' is unknown",
                 "there are CUDA and OpenCL");
    }
    return {};
  }

  /// Compares the list of arguments with the kernel's declaration. An argument too many, or one of
  /// another size, would otherwise be passed as it is.
  Status CompareWithSource() {
    const CudaSyntax syntax = ParseCuda(kernel_.source.text);
    NoteOwnMacros(syntax);
    NoteOtherCase();
    const KernelDefinition* kernel = OnlyDefinition(syntax);
    if (kernel == nullptr) return {};
    LaunchStep& step = kernel_.plan.steps.front();
    const bool needs_arguments = std::ranges::any_of(
        kernel->templates, [](const TemplateParameter& parameter) {
          return parameter.fallback.empty() && parameter.type != "typename" &&
                 parameter.type != "class";
        });
    if (needs_arguments && step.entry.find('<') == std::string::npos) {
      return Bad("KernelSpecification.KernelName", "'" + kernel->name + "' is a template",
                 "write its arguments: \"" + kernel->name + "<block_size_x, float>\"");
    }
    if (step.args.size() + kernel_.plan.symbols.size() == kernel->parameters.size())
      PassConstants(step);
    ATUNNER_RETURN_IF_ERROR(CompareArguments(*kernel, step));
    MarkWritten(syntax, *kernel, step);
    return {};
  }

  /// The kernel's definition; nullptr if there is not exactly one, or if its parameters depend on
  /// #if.
  const KernelDefinition* OnlyDefinition(const CudaSyntax& syntax) const {
    const auto named = [&](const KernelDefinition& kernel) {
      return kernel.name == kernel_.spec.name || kernel.qualified == kernel_.spec.name;
    };
    if (std::ranges::count_if(syntax.kernels, named) != 1) return nullptr;
    const KernelDefinition& kernel = *std::ranges::find_if(syntax.kernels, named);
    for (size_t i = kernel.head.begin; i < kernel.head.end; ++i) {
      if (syntax.token(i).kind == Token::Kind::kDirective) return nullptr;
    }
    return &kernel;
  }

  /// Notes parameters that the source defines itself, so that their values have no effect.
  void NoteOwnMacros(const CudaSyntax& syntax) {
    for (const FileConstant& constant : syntax.constants) {
      if (constant.kind != FileConstant::Kind::kMacro || constant.guarded ||
          scope_.space.Find(constant.name) < 0)
        continue;
      kernel_.notes.push_back(fmt::format(
          "{}:{} defines '{}' itself: where that takes effect, its values are not tried",
          kernel_.source.name, constant.line, constant.name));
    }
  }

  /// Notes parameters whose name the source uses in another case only, e.g. BLOCK_SIZE_X for the
  /// kernel's block_size_x, so that their values have no effect. Published files have such
  /// mistakes.
  void NoteOtherCase() {
    const std::set<std::string_view> words = Words(kernel_.source.text);
    for (const Parameter& parameter : scope_.space.parameters) {
      if (words.contains(parameter.name) ||
          Words(kernel_.plan.steps.front().entry).contains(parameter.name))
        continue;
      const auto other = std::ranges::find_if(words, [&](std::string_view word) {
        return t1::EqualsIgnoringCase(word, parameter.name);
      });
      if (other == words.end()) continue;
      kernel_.notes.push_back(fmt::format(
          "{} does not name the parameter '{}', but '{}': its values do not reach the kernel",
          kernel_.source.name, parameter.name, *other));
    }
  }

  /// Passes all arguments, as Kernel Tuner does, including those that fill a __constant__ variable:
  /// published kernels have unused parameters for them.
  void PassConstants(LaunchStep& step) const {
    step.args.clear();
    for (const ArgSpec& spec : kernel_.spec.args) step.args.push_back(BindingOf(spec));
  }

  /// Makes an argument in-out if it is marked ReadOnly but the kernel only assigns to it, or
  /// WriteOnly with a stated fill to which the kernel adds. Some published files mark results so.
  void MarkWritten(const CudaSyntax& syntax, const KernelDefinition& kernel,
                   const LaunchStep& step) {
    for (size_t i = 0; i < step.args.size(); ++i) {
      if (step.args[i].kind != ArgBinding::Kind::kTensor) continue;
      const auto arg = std::ranges::find(kernel_.spec.args, step.args[i].name, &ArgSpec::name);
      const Role used = RoleOf(syntax, kernel, kernel.parameters[i]);
      const bool written = arg->role == Role::kInput && used == Role::kOutput;
      const bool read = arg->role == Role::kOutput && used == Role::kInOut &&
                        StatesValues(arg->fill.kind);
      if (!written && !read) continue;
      arg->role = Role::kInOut;
      kernel_.notes.push_back(
          fmt::format("'{}' is marked {} and the kernel {} it: taken as ReadWrite", arg->name,
                      written ? "ReadOnly" : "WriteOnly", written ? "writes" : "reads"));
    }
  }

  Status CompareArguments(const KernelDefinition& kernel, const LaunchStep& step) const {
    const std::string place = fmt::format("{}:{}", kernel_.source.name, kernel.line);
    if (kernel.parameters.size() != step.args.size()) {
      return Bad("KernelSpecification.Arguments",
                 fmt::format("{} are passed, '{}' takes {} ({})", step.args.size(), kernel.name,
                             kernel.parameters.size(), place),
                 "list one per parameter; what fills a __constant__ variable has MemType Constant");
    }
    for (size_t i = 0; i < step.args.size(); ++i) {
      const KernelParameter& parameter = kernel.parameters[i];
      const bool scalar = step.args[i].kind == ArgBinding::Kind::kScalar;
      const auto type = ParseCType(parameter.type);
      if (!scalar || parameter.pointer || !type) continue;
      const DType dtype = step.args[i].dtype;
      if (type->lanes == 1 && SizeOf(type->dtype) == SizeOf(dtype) &&
          IsFloat(type->dtype) == IsFloat(dtype))
        continue;
      return Bad("KernelSpecification.Arguments",
                 fmt::format("number {} is a scalar {}, parameter '{}' of '{}' is {} ({})", i + 1,
                             Name(dtype), parameter.name, kernel.name, parameter.type, place));
    }
    return {};
  }

  Status Reference() {
    const json& list = At(At(root_, "KernelSpecification"), "ReferenceArguments");
    if (!list.is_array() || list.empty()) return {};
    std::string note =
        "ReferenceArguments are not read: the default configuration says what is right";
    for (const json& each : list) {
      const json& threshold = At(each, "ValidationThreshold");
      if (At(each, "ValidationMethod") != "SideBySideRelativeComparison" || !threshold.is_number())
        continue;
      const double relative = threshold.get<double>();
      if (!(relative >= 0) || std::isinf(relative))
        return Bad("KernelSpecification.ReferenceArguments",
                   "a ValidationThreshold that is not a finite number of at least 0");
      kernel_.spec.tolerance.relative = std::max(kernel_.spec.tolerance.relative.value_or(0),
                                                 relative);
      note =
          "of the ReferenceArguments only the relative threshold is read: the default "
          "configuration says what is right";
    }
    kernel_.notes.push_back(std::move(note));
    return {};
  }

  const json& root_;
  const FileReader& read_;
  t1::Scope scope_;
  UserKernel kernel_;
  LaunchStep step_;
};

}  // namespace

Result<UserKernel> ParseT1(std::string_view text, const std::string& where,
                           const FileReader& read) {
  const json root = json::parse(text, nullptr, false, true);
  if (root.is_discarded()) return Invalid("not valid JSON", where, "check commas and quotes");
  return Reader(root, where, read).Run();
}

}  // namespace atunner
