#include "atunner/importers/divide_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "atunner/importers/program/program_reader.h"

namespace atunner::importers {
namespace {

using Level = size_t;

/// Calls `use` with the name of each tensor among the arguments.
void ForEachTensor(const ProgramNode& node, const std::function<void(const std::string&)>& use) {
  for (const NamedArgument& argument : node.arguments) {
    if (const auto* tensor = std::get_if<TensorRef>(&argument.value)) use(tensor->name);
    if (const auto* tensors = std::get_if<TensorRefs>(&argument.value)) {
      for (const auto& tensor : *tensors) {
        if (tensor) use(tensor->name);
      }
    }
  }
}

/// PyTorch's number of an element type; 0 for those that it lacks.
int64_t NumberOf(DType dtype) {
  constexpr int64_t kMostNumbers = 64;
  for (int64_t number = 1; number < kMostNumbers; ++number) {
    if (DTypeOfNumber(number) == dtype) return number;
  }
  return 0;
}

ForeignJson JsonOf(const std::optional<TensorRef>& tensor) {
  if (!tensor) return {{"as_none", true}};
  return {{"as_tensor", {{"name", tensor->name}}}};
}

/// An argument as a member of the program's union; nullopt for devices and the like, whose
/// defaults are right.
std::optional<ForeignJson> JsonOf(const Argument& argument) {
  struct Writer {
    using Json = std::optional<ForeignJson>;
    Json operator()(std::monostate) const { return ForeignJson{{"as_none", true}}; }
    Json operator()(const TensorRef& tensor) const { return JsonOf(std::optional(tensor)); }
    Json operator()(const TensorRefs& tensors) const {
      ForeignJson list = ForeignJson::array();
      for (const auto& tensor : tensors) list.push_back(JsonOf(tensor));
      return ForeignJson{{"as_optional_tensors", list}};
    }
    Json operator()(bool value) const { return ForeignJson{{"as_bool", value}}; }
    Json operator()(const std::vector<bool>& list) const { return ForeignJson{{"as_bools", list}}; }
    Json operator()(int64_t value) const { return ForeignJson{{"as_int", value}}; }
    Json operator()(const std::vector<int64_t>& list) const {
      return ForeignJson{{"as_ints", list}};
    }
    Json operator()(double value) const { return ForeignJson{{"as_float", Real(value)}}; }
    Json operator()(const std::vector<double>& list) const {
      ForeignJson reals = ForeignJson::array();
      for (const double value : list) reals.push_back(Real(value));
      return ForeignJson{{"as_floats", reals}};
    }
    Json operator()(const std::string& text) const { return ForeignJson{{"as_string", text}}; }
    Json operator()(const ScalarType& type) const {
      if (!type.dtype) return std::nullopt;
      return ForeignJson{{"as_scalar_type", NumberOf(*type.dtype)}};
    }
    Json operator()(const Opaque&) const { return std::nullopt; }

    static ForeignJson Real(double value) {
      if (value != value) return "NaN";
      if (value - value == 0) return value;
      return value > 0 ? "Infinity" : "-Infinity";
    }
  };
  return std::visit(Writer(), argument);
}

/// The library's operator that a node stays as a whole; empty for others.
std::string_view WholeOperator(const ProgramNode& node) {
  if (node.target == "atunner.attention.default") return "attention_gqa";
  if (node.target == "atunner.attention_backward.default") return "attention_gqa_backward";
  return {};
}

template <class T>
T ValueOr(const ProgramNode& node, std::string_view name, T fallback) {
  const auto found = std::ranges::find(node.arguments, name, &NamedArgument::name);
  if (found == node.arguments.end()) return fallback;
  const T* value = std::get_if<T>(&found->value);
  return value == nullptr ? fallback : *value;
}

class Divider {
 public:
  Divider(const ModelFile& file, const std::string& name)
      : file_(file), program_(file.program), name_(name) {}

  Result<DividedModel> Divide() {
    needed_ = NeededNodes(program_);
    ATUNNER_RETURN_IF_ERROR(AddInputs());
    FindLevels();
    FindUses();
    for (Level level = 0; level < segments_.size(); ++level) {
      ATUNNER_RETURN_IF_ERROR(AddSegment(level));
      for (const size_t node : externs_[level])
        ATUNNER_RETURN_IF_ERROR(WholeOperator(program_.nodes[node]).empty() ? AddExtern(node)
                                                                            : AddWhole(node));
    }
    const auto is_segment = [](const auto& step) {
      return std::holds_alternative<ModelSegment>(step);
    };
    if (std::ranges::none_of(model_.steps, is_segment))
      return Fail(ErrorCode::kUnsupported, "no operator of the model is known", name_,
                  "docs/how-to/optimize-a-model.md lists what is computed");
    model_.outputs = program_.outputs;
    model_.notes.insert(model_.notes.begin(), program_.notes.begin(), program_.notes.end());
    return std::move(model_);
  }

 private:
  Result<ModelValue> ValueOf(const std::string& name) const {
    const auto meta = program_.tensors.find(name);
    if (meta == program_.tensors.end())
      return Invalid("'" + name + "' has no tensor_values", name_);
    if (!meta->second.type.dtype)
      return Fail(ErrorCode::kUnsupported, "the element type of '" + name + "' is not supported",
                  name_);
    const auto& sizes = meta->second.sizes;
    return ModelValue{name, {*meta->second.type.dtype, graph::Shape(sizes.begin(), sizes.end())}};
  }

  Status AddInputs() {
    std::vector<std::string> missing;
    for (const InputKind kind :
         {InputKind::kUser, InputKind::kParameter, InputKind::kBuffer, InputKind::kConstant}) {
      for (const ProgramInput& input : program_.inputs) {
        if (input.kind != kind) continue;
        ATUNNER_TRY(ModelValue value, ValueOf(input.name));
        const auto place = file_.weights.find(input.qualified_name);
        const bool found = kind != InputKind::kUser && place != file_.weights.end();
        if (file_.has_weights && kind != InputKind::kUser && !found)
          missing.push_back(input.qualified_name);
        if (!levels_.emplace(input.name, 0).second)
          return Invalid("two inputs are called '" + input.name + "'", name_);
        model_.inputs.push_back({std::move(value), kind, input.qualified_name,
                                 found ? std::optional(place->second) : std::nullopt});
      }
    }
    if (missing.empty()) return {};
    std::string names;
    for (const std::string& each : missing) names += (names.empty() ? "" : ", ") + each;
    return Invalid("weights are missing: " + names, name_,
                   "is the archive or its folder complete?");
  }

  /// True for nodes that become part of a graph with others.
  static bool JoinsGraph(const ProgramNode& node) {
    return KnowsOperator(node.target) && WholeOperator(node).empty();
  }

  /// The level of each node, and the nodes and externs of each level.
  void FindLevels() {
    std::vector<Level> level_of(program_.nodes.size(), 0);
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!needed_[i]) continue;
      const ProgramNode& node = program_.nodes[i];
      ForEachTensor(node, [&](const std::string& name) {
        const auto made = levels_.find(name);
        if (made != levels_.end()) level_of[i] = std::max(level_of[i], made->second);
      });
      SetLevel(node, level_of[i]);
    }
    MoveToUsers(level_of);
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      if (!needed_[i]) continue;
      const Level level = level_of[i];
      if (segments_.size() <= level) segments_.resize(level + 1), externs_.resize(level + 1);
      (JoinsGraph(program_.nodes[i]) ? segments_ : externs_)[level].push_back(i);
    }
  }

  void SetLevel(const ProgramNode& node, Level level) {
    for (const auto& output : node.outputs) {
      if (output) levels_[output->name] = level + (JoinsGraph(node) ? 0 : 1);
    }
  }

  /// Moves nodes to the first level that uses them, unless more bytes would cross levels then. In a
  /// training step an optimizer's products with its states need no gradient: they would be computed
  /// and stored at the beginning.
  void MoveToUsers(std::vector<Level>& level_of) {
    constexpr Level kNever = SIZE_MAX;
    std::map<std::string_view, Level> first_use;
    const std::set<std::string_view> given = MadeOfInputs();
    std::set<std::string_view> results;
    for (const ProgramOutput& output : program_.outputs) results.insert(output.name);
    for (size_t i = program_.nodes.size(); i-- > 0;) {
      if (!needed_[i]) continue;
      const ProgramNode& node = program_.nodes[i];
      Level first = kNever;
      int64_t made = 0, taken = 0;
      for (const auto& output : node.outputs) {
        if (!output) continue;
        const auto use = first_use.find(output->name);
        if (use != first_use.end()) first = std::min(first, use->second);
        if (results.contains(output->name)) first = 0;
        made += BytesOf(output->name);
      }
      std::set<std::string_view> operands;
      ForEachTensor(node, [&](const std::string& name) {
        if (!given.contains(name) && operands.insert(name).second) taken += BytesOf(name);
      });
      if (JoinsGraph(node) && first != kNever && first > level_of[i] && taken <= made) {
        level_of[i] = first;
        SetLevel(node, first);
      }
      ForEachTensor(node, [&](const std::string& name) {
        const auto use = first_use.try_emplace(name, level_of[i]).first;
        use->second = std::min(use->second, level_of[i]);
      });
    }
  }

  /// Inputs, and what graphs compute of inputs alone: it can be computed at any level.
  std::set<std::string_view> MadeOfInputs() const {
    std::set<std::string_view> made;
    for (const DividedInput& input : model_.inputs) made.insert(input.value.name);
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      const ProgramNode& node = program_.nodes[i];
      bool all = needed_[i] && JoinsGraph(node);
      ForEachTensor(node, [&](const std::string& name) { all = all && made.contains(name); });
      for (const auto& output : node.outputs) {
        if (all && output) made.insert(output->name);
      }
    }
    return made;
  }

  /// 0 for what is not known.
  int64_t BytesOf(const std::string& name) const {
    const auto meta = program_.tensors.find(name);
    if (meta == program_.tensors.end() || !meta->second.type.dtype) return 0;
    int64_t bytes = static_cast<int64_t>(SizeOf(*meta->second.type.dtype));
    for (const int64_t size : meta->second.sizes) bytes *= size;
    return bytes;
  }

  /// For each value the last level at which something outside its own segment needs it.
  void FindUses() {
    for (Level level = 0; level < segments_.size(); ++level) {
      for (const size_t node : segments_[level]) {
        ForEachTensor(program_.nodes[node], [&](const std::string& name) {
          const auto made = levels_.find(name);
          if (made != levels_.end() && made->second < level) crossing_.insert(name);
        });
      }
      for (const size_t node : externs_[level]) {
        ForEachTensor(program_.nodes[node],
                      [&](const std::string& name) { crossing_.insert(name); });
      }
    }
    for (const ProgramOutput& output : program_.outputs) crossing_.insert(output.name);
  }

  /// The nodes of a level as a program of its own.
  Status AddSegment(Level level) {
    if (segments_[level].empty()) return {};
    const std::string called = segments_.size() == 1 ? name_ : fmt::format("{}_{}", name_, level);
    ATUNNER_TRY(ModelSegment segment, SegmentOf(segments_[level], ResultsOf(level), called));
    model_.steps.emplace_back(std::move(segment));
    return {};
  }

  /// A node as a segment of its own. What it computes is stated where its tensors are four
  /// different values between segments; the order of others is the model's.
  Status AddWhole(size_t index) {
    const ProgramNode& node = program_.nodes[index];
    std::vector<std::string> results;
    for (const auto& output : node.outputs) {
      if (output) results.push_back(output->name);
    }
    const std::string called = fmt::format("{}_{}", name_, node.Name());
    ATUNNER_TRY(ModelSegment segment, SegmentOf({index}, results, called));
    std::vector<std::string> operands;
    ForEachTensor(node, [&](const std::string& name) { operands.push_back(name); });
    LibraryCall call{
        std::string(WholeOperator(node)),
        {},
        segment.graph.node(segment.graph.inputs()[0]).type.dtype,
        {{"causal", ValueOr(node, "is_causal", false)}, {"scale", ValueOr(node, "scale", 1.0)}}};
    for (size_t i = 0; i < 2 && i < operands.size(); ++i)
      call.shapes.push_back(program_.tensors.at(operands[i]).sizes);
    if (segment.inputs == operands && segment.outputs.size() == node.outputs.size())
      segment.library = std::move(call);
    model_.steps.emplace_back(std::move(segment));
    return {};
  }

  Result<ModelSegment> SegmentOf(const std::vector<size_t>& nodes,
                                 const std::vector<std::string>& results,
                                 const std::string& called) {
    ModelFile part;
    std::set<std::string> made, seen;
    std::vector<std::string> taken;
    for (const size_t i : nodes) {
      part.program.nodes.push_back(program_.nodes[i]);
      ForEachTensor(program_.nodes[i], [&](const std::string& name) {
        if (!made.contains(name) && seen.insert(name).second) taken.push_back(name);
      });
      for (const auto& output : program_.nodes[i].outputs) {
        if (output) made.insert(output->name);
      }
    }
    part.program.tensors = program_.tensors;
    for (const std::string& name : InOrderOfInputs(taken))
      part.program.inputs.push_back({InputKind::kUser, name, ""});
    for (const std::string& name : results)
      part.program.outputs.push_back({name, OutputRole::kResult, ""});
    ATUNNER_TRY(ImportedModel imported, ImportProgram(part, called));
    ModelSegment segment{std::move(imported.graph), {}, {}};
    for (const ProgramInput& input : part.program.inputs) segment.inputs.push_back(input.name);
    for (const ProgramOutput& output : part.program.outputs) segment.outputs.push_back(output.name);
    return segment;
  }

  /// Inputs of the model come first, in the model's order.
  std::vector<std::string> InOrderOfInputs(const std::vector<std::string>& taken) const {
    const std::set<std::string_view> wanted(taken.begin(), taken.end());
    std::vector<std::string> ordered;
    std::set<std::string_view> inputs;
    for (const DividedInput& input : model_.inputs) {
      if (wanted.contains(input.value.name)) ordered.push_back(input.value.name);
      inputs.insert(input.value.name);
    }
    for (const std::string& name : taken) {
      if (!inputs.contains(name)) ordered.push_back(name);
    }
    return ordered;
  }

  /// Values of a level's segment that others need, in the order in which they are computed.
  std::vector<std::string> ResultsOf(Level level) const {
    std::vector<std::string> results;
    for (const size_t i : segments_[level]) {
      for (const auto& output : program_.nodes[i].outputs) {
        if (output && crossing_.contains(output->name)) results.push_back(output->name);
      }
    }
    return results;
  }

  Status AddExtern(size_t index) {
    const ProgramNode& node = program_.nodes[index];
    const std::string where = fmt::format("{}, node '{}' ({})", name_, node.Name(), node.target);
    const size_t dot = node.target.rfind('.');
    if (dot != std::string::npos && dot > 0 && node.target[dot - 1] == '_')
      return Fail(ErrorCode::kUnsupported, "an unknown operator works in place", where,
                  "export the model with `torch.export.export(…).run_decompositions()`");
    ExternCall call{node.target, "", {}, {}};
    ForeignJson arguments = ForeignJson::array();
    for (const NamedArgument& argument : node.arguments) {
      if (auto value = JsonOf(argument.value))
        arguments.push_back({{"name", argument.name}, {"arg", *std::move(value)}});
    }
    call.arguments = arguments.dump(-1, ' ', true, ForeignJson::error_handler_t::replace);
    std::set<std::string> read;
    ForEachTensor(node, [&](const std::string& name) {
      if (read.insert(name).second) call.reads.push_back(name);
    });
    for (const auto& output : node.outputs) {
      if (!output)
        return Fail(ErrorCode::kUnsupported, "an unknown operator has a result that is no tensor",
                    where);
      ATUNNER_TRY(ModelValue value, ValueOf(output->name));
      model_.externs.push_back(std::move(value));
      call.writes.push_back(output->name);
    }
    model_.notes.push_back(
        fmt::format("{} (node '{}') is left to the framework", node.target, node.Name()));
    model_.steps.emplace_back(std::move(call));
    return {};
  }

  const ModelFile& file_;
  const ExportedProgram& program_;
  const std::string& name_;
  std::vector<bool> needed_;
  std::map<std::string, Level> levels_;
  std::vector<std::vector<size_t>> segments_;  ///< nodes by level
  /// Unknown nodes, and those that are segments of their own, which run after that segment
  std::vector<std::vector<size_t>> externs_;
  std::set<std::string> crossing_;  ///< values that others than their segment need
  DividedModel model_;
};

}  // namespace

namespace {

/// A model without unknown operators: names of values are those of the graph.
DividedModel OneSegment(const ImportedModel& model) {
  DividedModel divided;
  ModelSegment segment{model.graph, {}, {}};
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const ModelInput& input = model.inputs[i];
    const graph::TensorType& type = model.graph.node(model.graph.inputs()[i]).type;
    divided.inputs.push_back({{input.name, type}, input.kind, input.qualified_name, input.place});
    segment.inputs.push_back(input.name);
  }
  for (const graph::Output& output : model.graph.outputs()) {
    segment.outputs.push_back(output.name);
    divided.outputs.push_back({output.name, OutputRole::kResult, ""});
  }
  divided.steps.emplace_back(std::move(segment));
  divided.notes = model.notes;
  return divided;
}

}  // namespace

Result<DividedModel> DivideModel(const ModelFile& file, const std::string& name) {
  return Divider(file, name).Divide();
}

Result<DividedModel> DivideModelFile(const Path& path, const ImportOptions& options) {
  if (IsOnnxFile(path)) {
    ATUNNER_TRY(const ImportedModel model, ImportModel(path, options));
    return OneSegment(model);
  }
  ATUNNER_TRY(const ModelFile file, ReadModelFile(path));
  return DivideModel(file, GraphNameOf(path));
}

}  // namespace atunner::importers
