#include "atunner/importers/import_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "atunner/graph/lexer.h"
#include "atunner/importers/archive/mapped_file.h"
#include "atunner/importers/aten/aten_table.h"
#include "atunner/importers/import_onnx.h"

namespace atunner::importers {
namespace {

using graph::GraphBuilder;
using graph::Value;

constexpr size_t kMostNodes = 1'000'000;

/// "aten.relu_.default" computes what "aten.relu.default" does, and puts it into its operand.
bool IsInPlace(std::string_view target) {
  const size_t dot = target.rfind('.');
  return dot != std::string_view::npos && dot > 0 && target[dot - 1] == '_' &&
         FindAten(target) == nullptr;
}

const AtenOperator* FindOperator(const std::string& target) {
  if (!IsInPlace(target)) return FindAten(target);
  std::string computes = target;
  return FindAten(computes.erase(computes.rfind('.') - 1, 1));
}

/// Operators whose results may share memory with an operand.
bool MakesViews(std::string_view target) {
  static constexpr std::string_view kViews[] = {"alias",
                                                "as_strided",
                                                "broadcast_to",
                                                "chunk",
                                                "contiguous",
                                                "detach",
                                                "detach_",
                                                "dropout",
                                                "expand",
                                                "flatten",
                                                "lift_fresh",
                                                "mT",
                                                "narrow",
                                                "numpy_T",
                                                "permute",
                                                "reshape",
                                                "_reshape_alias",
                                                "select",
                                                "slice",
                                                "split",
                                                "split_with_sizes",
                                                "squeeze",
                                                "t",
                                                "to",
                                                "transpose",
                                                "type_as",
                                                "unbind",
                                                "unflatten",
                                                "_unsafe_view",
                                                "unsqueeze",
                                                "view"};
  const size_t first = target.find('.') + 1;
  const std::string_view name = target.substr(first, target.rfind('.') - first);
  return std::ranges::find(kViews, name) != std::end(kViews);
}

/// All unknown operators, with the first node of each.
Status CheckTargets(const ExportedProgram& program, const std::vector<bool>& needed,
                    const std::string& where) {
  std::map<std::string, std::pair<std::string, int>> unknown;
  for (size_t i = 0; i < needed.size(); ++i) {
    const ProgramNode& node = program.nodes[i];
    if (!needed[i] || FindOperator(node.target) != nullptr) continue;
    ++unknown.try_emplace(node.target, node.Name(), 0).first->second.second;
  }
  if (unknown.empty()) return {};
  std::vector<std::string> listed;
  for (const auto& [target, first] : unknown)
    listed.push_back(fmt::format("{} ({}node '{}')", target,
                                 first.second > 1 ? fmt::format("{} times, ", first.second) : "",
                                 first.first));
  return Fail(
      ErrorCode::kUnsupported,
      fmt::format("{} unknown: {}", unknown.size() == 1 ? "an operator is" : "operators are",
                  fmt::join(listed, ", ")),
      where, "docs/how-to/optimize-a-model.md lists what is computed");
}

/// A name for an input or output: letters, digits and _, unlike all names before.
class Names {
 public:
  std::string Unused(std::string_view wanted) {
    std::string name;
    for (const char c : wanted) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    if (!graph::IsName(name)) name = "_" + name;  // it begins with a digit, or is a keyword
    const std::string base = name;
    for (int i = 2; !used_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
    return name;
  }

 private:
  std::set<std::string> used_;
};

/// Memory that an operator made: the values that are in it.
struct Memory {
  std::vector<std::string> names;
  bool has_views = false;  ///< values of other shapes are in it, too
};

class Importer {
 public:
  Importer(const ModelFile& file, std::string name)
      : file_(file), program_(file.program), where_(name), builder_(std::move(name)) {}

  Result<ImportedModel> Import() {
    if (program_.nodes.size() > kMostNodes)
      return Invalid(fmt::format("the program has {} nodes", program_.nodes.size()), where_,
                     fmt::format("at most {} are read", kMostNodes));
    const std::vector<bool> needed = NeededNodes(program_);
    ATUNNER_RETURN_IF_ERROR(CheckTargets(program_, needed, where_));
    ATUNNER_RETURN_IF_ERROR(CheckWeights());
    ATUNNER_RETURN_IF_ERROR(AddInputs());
    for (size_t i = 0; i < needed.size(); ++i) {
      if (needed[i]) ATUNNER_RETURN_IF_ERROR(AddNode(program_.nodes[i]));
    }
    ATUNNER_RETURN_IF_ERROR(AddOutputs());
    ATUNNER_TRY(graph::ValidGraph graph, std::move(builder_).Finish());
    return ImportedModel{std::move(graph), std::move(inputs_), std::move(outputs_),
                         std::move(operators_), program_.notes};
  }

 private:
  Status CheckWeights() const {
    if (!file_.has_weights) return {};
    std::vector<std::string> missing;
    for (const ProgramInput& input : program_.inputs) {
      if (input.kind != InputKind::kUser && !file_.weights.contains(input.qualified_name))
        missing.push_back(input.qualified_name);
    }
    if (missing.empty()) return {};
    return Invalid(fmt::format("weights are missing: {}", fmt::join(missing, ", ")), where_,
                   "is the archive or its folder complete?");
  }

  Status AddInputs() {
    for (const InputKind kind :
         {InputKind::kUser, InputKind::kParameter, InputKind::kBuffer, InputKind::kConstant}) {
      for (const ProgramInput& input : program_.inputs) {
        if (input.kind == kind) ATUNNER_RETURN_IF_ERROR(AddInput(input));
      }
    }
    return {};
  }

  Status AddInput(const ProgramInput& input) {
    const auto meta = program_.tensors.find(input.name);
    const std::string where = fmt::format("{}, input '{}'", where_, input.name);
    if (meta == program_.tensors.end()) return Invalid("the input has no tensor_values", where);
    if (!meta->second.type.dtype)
      return Fail(ErrorCode::kUnsupported, "the input's element type is not supported", where);
    builder_.SetLocation(where);
    const std::string name = names_.Unused(input.name);
    const auto& sizes = meta->second.sizes;
    const Value value = builder_.Input(
        name, {*meta->second.type.dtype, graph::Shape(sizes.begin(), sizes.end())});
    if (!builder_.ok()) return BuilderError(where);
    if (!values_.emplace(input.name, value).second)
      return Invalid("two inputs have this name", where);
    const auto place = file_.weights.find(input.qualified_name);
    inputs_.push_back({name, input.kind, input.qualified_name,
                       place == file_.weights.end() ? std::nullopt : std::optional(place->second)});
    return {};
  }

  Status AddNode(const ProgramNode& node) {
    const std::string where = fmt::format("{}, node '{}' ({})", where_, node.Name(), node.target);
    builder_.SetLocation(where);
    ++operators_[node.target];
    const AtenOperator& op = *FindOperator(node.target);
    AtenCall call(builder_, node, op.parameters, values_, program_, cache_);
    const std::vector<Value> results = op.build(call, op.text);
    if (!builder_.ok()) return BuilderError(where);
    if (IsInPlace(node.target)) ATUNNER_RETURN_IF_ERROR(Overwrite(node, results, where));
    for (size_t i = 0; i < std::min(results.size(), node.outputs.size()); ++i) {
      if (!node.outputs[i]) continue;
      const std::string& name = node.outputs[i]->name;
      ATUNNER_RETURN_IF_ERROR(CheckResult(name, results[i], where));
      if (!values_.emplace(name, results[i]).second)
        return Invalid("the value '" + name + "' is computed twice", where);
    }
    NoteMemory(node);
    return {};
  }

  /// The operand of an operator in place has the result's value from here on. Its views would have
  /// to change too, and inputs are the caller's: both are refused.
  Status Overwrite(const ProgramNode& node, const std::vector<Value>& results,
                   const std::string& where) {
    const TensorRef* self = node.arguments.empty()
                                ? nullptr
                                : std::get_if<TensorRef>(&node.arguments[0].value);
    if (self == nullptr || results.empty()) return Invalid("the operand is no tensor", where);
    const auto memory = memories_.find(self->name);
    if (memory == memories_.end() || memory->second->has_views)
      return Fail(ErrorCode::kUnsupported, "the operator changes an input or a view in place",
                  where, "export the model with `torch.export.export(…).run_decompositions()`");
    for (const std::string& name : memory->second->names)
      values_.insert_or_assign(name, results[0]);
    return {};
  }

  /// Keeps which names stand for one memory: the result of an operator in place is its operand.
  void NoteMemory(const ProgramNode& node) {
    const bool views = MakesViews(node.target);
    std::shared_ptr<Memory> memory;
    for (const NamedArgument& argument : node.arguments) {
      const auto* tensor = std::get_if<TensorRef>(&argument.value);
      const auto known = tensor == nullptr ? memories_.end() : memories_.find(tensor->name);
      if (known == memories_.end()) continue;
      if (views) known->second->has_views = true;
      if (IsInPlace(node.target) && !memory) memory = known->second;
    }
    if (views) return;
    for (const auto& output : node.outputs) {
      if (!output) continue;
      auto& place = memories_[output->name];
      place = memory ? memory : std::make_shared<Memory>();
      place->names.push_back(output->name);
    }
  }

  std::unexpected<Error> BuilderError(const std::string& where) {
    Error error = std::move(builder_).Finish().error();
    error.where = where;  // the library's operators state a place of their own
    return std::unexpected(std::move(error));
  }

  /// What was made must be what the program states.
  Status CheckResult(const std::string& name, Value value, const std::string& where) const {
    const auto stated = program_.tensors.find(name);
    if (stated == program_.tensors.end()) return {};
    const auto& [type, sizes] = stated->second;
    const graph::TensorType& made = builder_.TypeOf(value);
    const graph::Shape shape(sizes.begin(), sizes.end());
    if (made.shape == shape && (!type.dtype || *type.dtype == made.dtype)) return {};
    return Invalid(fmt::format("the program states {} for '{}', its arguments make {}",
                               graph::TensorType{type.dtype.value_or(made.dtype), shape}.ToString(),
                               name, made.ToString()),
                   where);
  }

  Status AddOutputs() {
    if (program_.outputs.empty()) return Invalid("the program has no results", where_);
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const ProgramOutput& output = program_.outputs[i];
      const auto value = values_.find(output.name);
      if (value == values_.end())
        return Invalid(fmt::format("the result '{}' is not computed", output.name), where_);
      const std::string name = names_.Unused(WantedName(output, i));
      builder_.Output(name, OwnValue(value->second));
      outputs_.push_back({name, output.role, output.of});
    }
    return {};
  }

  std::string WantedName(const ProgramOutput& output, size_t number) const {
    switch (output.role) {
      case OutputRole::kLoss:
        return "loss";
      case OutputRole::kGradient:
        return "grad_" + output.of;
      case OutputRole::kUpdate:
        return "next_" + output.of;
      case OutputRole::kResult:
        break;
    }
    return program_.outputs.size() == 1 ? "y" : fmt::format("y{}", number);
  }

  /// An output that is an input is a copy of it.
  Value OwnValue(Value value) {
    const bool is_input = std::ranges::any_of(inputs_, [&](const ModelInput& input) {
      return builder_.NodeOf(value).name == input.name;
    });
    return is_input ? builder_.Map("a", {value}) : value;
  }

  const ModelFile& file_;
  const ExportedProgram& program_;
  std::string where_;
  GraphBuilder builder_;
  Names names_;
  Values values_;
  LibraryCache cache_;
  std::vector<ModelInput> inputs_;
  std::vector<ModelOutput> outputs_;
  std::map<std::string, int> operators_;
  std::map<std::string, std::shared_ptr<Memory>, std::less<>> memories_;
};

}  // namespace

std::string GraphNameOf(const Path& path) { return Names().Unused(path.stem().string()); }

bool KnowsOperator(const std::string& target) { return FindOperator(target) != nullptr; }

std::vector<bool> NeededNodes(const ExportedProgram& program) {
  std::set<std::string_view> wanted;
  for (const ProgramOutput& output : program.outputs) wanted.insert(output.name);
  std::vector<bool> needed(program.nodes.size(), false);
  for (size_t i = program.nodes.size(); i-- > 0;) {
    const ProgramNode& node = program.nodes[i];
    needed[i] = std::ranges::any_of(
        node.outputs, [&](const auto& output) { return output && wanted.contains(output->name); });
    if (IsInPlace(node.target)) {  // its operand may be what is wanted
      const auto* self = node.arguments.empty() ? nullptr
                                                : std::get_if<TensorRef>(&node.arguments[0].value);
      needed[i] = needed[i] || (self != nullptr && wanted.contains(self->name));
    }
    if (!needed[i]) continue;
    for (const NamedArgument& argument : node.arguments) {
      if (const auto* tensor = std::get_if<TensorRef>(&argument.value)) wanted.insert(tensor->name);
      if (const auto* tensors = std::get_if<TensorRefs>(&argument.value)) {
        for (const auto& tensor : *tensors) {
          if (tensor) wanted.insert(tensor->name);
        }
      }
    }
  }
  return needed;
}

bool ImportedModel::trains() const {
  return std::ranges::any_of(outputs, [&](const ModelOutput& output) {
    return output.role == OutputRole::kGradient ||
           (output.role == OutputRole::kUpdate &&
            std::ranges::any_of(inputs, [&](const ModelInput& input) {
              return input.kind == InputKind::kParameter && input.qualified_name == output.of;
            }));
  });
}

Result<ImportedModel> ImportProgram(const ModelFile& file, const std::string& name) {
  return Importer(file, name).Import();
}

Result<ImportedModel> ImportModel(const Path& path, const ImportOptions& options) {
  if (IsOnnxFile(path)) {
    ATUNNER_TRY(const MappedFile mapped, MappedFile::Open(path));
    return ImportOnnx(mapped.bytes(), GraphNameOf(path), path.parent_path().string(), options);
  }
  ATUNNER_TRY(const ModelFile file, ReadModelFile(path));
  return ImportProgram(file, GraphNameOf(path));
}

}  // namespace atunner::importers
