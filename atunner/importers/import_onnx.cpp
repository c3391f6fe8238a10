#include "atunner/importers/import_onnx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "atunner/importers/onnx/onnx_model.h"
#include "atunner/importers/onnx/onnx_table.h"
#include "atunner/importers/onnx_tensors.h"

namespace atunner::importers {
namespace {

using graph::GraphBuilder;
using graph::Tensor;
using graph::Value;

constexpr size_t kMostNodes = 1'000'000;
/// The last set whose operators are known; a later one may give them another meaning.
constexpr int64_t kNewestOpset = 28;
constexpr int kDeepestCalls = 32;
/// What of a body its results need, in the order of the body.
std::vector<const OnnxNode*> NeededNodes(const std::vector<OnnxNode>& nodes,
                                         std::set<std::string, std::less<>> wanted) {
  std::vector<const OnnxNode*> needed;
  for (size_t i = nodes.size(); i-- > 0;) {
    const OnnxNode& node = nodes[i];
    const bool is = std::ranges::any_of(
        node.outputs, [&](const std::string& output) { return wanted.contains(output); });
    if (!is) continue;
    needed.push_back(&node);
    wanted.insert(node.inputs.begin(), node.inputs.end());
    for (const OnnxAttribute& attribute : node.attributes) {
      if (!attribute.graph) continue;  // a branch may use any value of the graph around
      for (const OnnxNode& inner : attribute.graph->nodes)
        wanted.insert(inner.inputs.begin(), inner.inputs.end());
      for (const OnnxValueInfo& output : attribute.graph->outputs) wanted.insert(output.name);
    }
  }
  std::ranges::reverse(needed);
  return needed;
}

class OnnxImporter {
 public:
  OnnxImporter(const OnnxModel& model, std::string name, std::string folder, std::string_view bytes,
               const ImportOptions& options)
      : model_(model),
        where_(name),
        options_(options),
        builder_(std::move(name)),
        tensors_(builder_, std::move(folder), bytes) {}

  Result<ImportedModel> Import() {
    if (model_.graph.nodes.size() > kMostNodes)
      return Invalid(fmt::format("the model has {} nodes", model_.graph.nodes.size()), where_);
    const auto opset = model_.opsets.find("");
    if (opset != model_.opsets.end() && (opset->second < 1 || opset->second > kNewestOpset))
      return Fail(
          ErrorCode::kUnsupported, fmt::format("the model has operator set {}", opset->second),
          where_,
          fmt::format("sets up to {} are read: export the model for an older one", kNewestOpset));
    if (model_.graph.has_sparse)
      return Fail(ErrorCode::kUnsupported, "the model has sparse weights", where_);
    std::set<std::string, std::less<>> wanted;
    for (const OnnxValueInfo& output : model_.graph.outputs) wanted.insert(output.name);
    const auto needed = NeededNodes(model_.graph.nodes, std::move(wanted));
    ATUNNER_RETURN_IF_ERROR(CheckOperators(needed));
    OnnxScope scope;
    AddInitializers(model_.graph, scope);
    ATUNNER_RETURN_IF_ERROR(AddInputs(scope));
    for (const OnnxNode* node : needed)
      ATUNNER_RETURN_IF_ERROR(AddNode(*node, model_.opsets, scope));
    ATUNNER_RETURN_IF_ERROR(AddOutputs(scope));
    ATUNNER_TRY(graph::ValidGraph graph, std::move(builder_).Finish());
    return ImportedModel{std::move(graph),
                         std::move(tensors_.inputs()),
                         std::move(outputs_),
                         std::move(operators_),
                         {}};
  }

 private:
  using Opsets = std::map<std::string, int64_t>;

  const OnnxFunction* FunctionOf(const OnnxNode& node) const {
    const auto found = std::ranges::find_if(model_.functions, [&](const OnnxFunction& function) {
      return function.name == node.op_type && function.domain == node.domain;
    });
    return found == model_.functions.end() ? nullptr : &*found;
  }

  void CollectUnknown(const std::vector<const OnnxNode*>& nodes, int depth,
                      std::map<std::string, std::string>& unknown) const {
    for (const OnnxNode* node : nodes) {
      if (const OnnxFunction* function = FunctionOf(*node);
          function != nullptr && depth < kDeepestCalls) {
        std::vector<const OnnxNode*> body;
        for (const OnnxNode& inner : function->nodes) body.push_back(&inner);
        CollectUnknown(body, depth + 1, unknown);
        continue;
      }
      const bool known = node->domain.empty() &&
                         (FindOnnx(node->op_type) != nullptr || node->op_type == "If");
      if (known) continue;
      const std::string prefix = node->domain.empty() ? "" : node->domain + ".";
      unknown.emplace(prefix + node->op_type, node->Title());
    }
  }

  Status CheckOperators(const std::vector<const OnnxNode*>& nodes) const {
    std::map<std::string, std::string> unknown;
    CollectUnknown(nodes, 0, unknown);
    if (unknown.empty()) return {};
    std::vector<std::string> listed;
    for (const auto& [name, title] : unknown)
      listed.push_back(fmt::format("{} (node {})", name, title));
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("{} unknown: {}", unknown.size() == 1 ? "an operator is" : "operators are",
                    fmt::join(listed, ", ")),
        where_, "docs/how-to/optimize-a-model.md lists what is computed");
  }

  /// The size of an axis: as stated, or as the caller gives it.
  std::optional<int64_t> SizeOf(const OnnxDim& dim, std::set<std::string>& missing) const {
    if (dim.symbol.empty()) return dim.size;
    const auto given = options_.sizes.find(dim.symbol);
    if (given != options_.sizes.end()) return given->second;
    missing.insert(dim.symbol);
    return std::nullopt;
  }

  Status AddInputs(OnnxScope& scope) {
    std::set<std::string> missing;
    std::vector<std::pair<const OnnxValueInfo*, graph::TensorType>> types;
    for (const OnnxValueInfo& input : model_.graph.inputs) {
      if (scope.contains(input.name)) continue;  // the default is the initializer
      if (const auto bound = options_.bound.find(input.name); bound != options_.bound.end()) {
        scope[input.name].known = std::make_shared<Tensor>(bound->second);
        continue;
      }
      const std::string where = fmt::format("{}, input '{}'", where_, input.name);
      const auto dtype = OnnxDType(input.data_type);
      if (!input.is_tensor || !dtype)
        return Fail(ErrorCode::kUnsupported,
                    fmt::format("the input is no tensor, or its element type ({}) is unknown",
                                input.data_type),
                    where);
      if (!input.dims) return Invalid("the input's rank is not stated", where);
      graph::TensorType type{*dtype, {}};
      for (const OnnxDim& dim : *input.dims)
        type.shape.emplace_back(SizeOf(dim, missing).value_or(1));
      types.emplace_back(&input, std::move(type));
    }
    if (!missing.empty())
      return Invalid(fmt::format("the sizes of these axes are open: {}", fmt::join(missing, ", ")),
                     where_, fmt::format("--dim {}=8", *missing.begin()));
    for (auto& [input, type] : types) {
      builder_.SetLocation(fmt::format("{}, input '{}'", where_, input->name));
      scope[input->name].value = tensors_.AddUserInput(input->name, std::move(type));
    }
    return Checked(where_);
  }

  Status Checked(const std::string& where) {
    if (builder_.ok()) return {};
    Error error = std::move(builder_).Finish().error();
    error.where = where;
    return std::unexpected(std::move(error));
  }

  Status AddNode(const OnnxNode& node, const Opsets& opsets, OnnxScope& scope) {
    const std::string where = fmt::format("{}, node {}", where_, node.Title());
    for (const std::string& input : node.inputs) {
      if (!input.empty() && !scope.contains(input))
        return Invalid("the value '" + input + "' is used before it is computed", where,
                       "the graph has a cycle, or the value is missing");
    }
    if (const OnnxFunction* function = FunctionOf(node)) return Call(*function, node, scope);
    if (node.op_type == "If") return AddIf(node, opsets, scope, where);
    const OnnxOperator* op = FindOnnx(node.op_type);
    if (op == nullptr || !node.domain.empty())
      return Fail(ErrorCode::kUnsupported, "the operator is unknown", where);
    const auto opset = opsets.find("");
    if (opset == opsets.end())
      return Invalid("the model states no version of its operators", where);
    ++operators_[node.op_type];
    const bool folds = !node.inputs.empty() &&
                       std::ranges::all_of(node.inputs, [&](const std::string& input) {
                         return input.empty() || IsFoldable(scope.find(input)->second);
                       });
    return folds ? Fold(*op, node, opset->second, scope, where)
                 : Build(*op, node, opset->second, scope, where);
  }

  std::vector<std::optional<OnnxOperand>> OperandsOf(const OnnxNode& node, OnnxScope& scope,
                                                     GraphBuilder* scratch) {
    std::vector<std::optional<OnnxOperand>> operands;
    for (const std::string& input : node.inputs) {
      if (input.empty()) {
        operands.emplace_back();
        continue;
      }
      OnnxSlot& slot = scope.find(input)->second;
      operands.push_back(OnnxOperand{[this, input, &slot, scratch] {
                                       if (scratch == nullptr) return tensors_.ValueOf(input, slot);
                                       const auto known = tensors_.KnownOf(slot);
                                       return known ? ConstantOf(*scratch, **known)
                                                    : scratch->Fail(known.error());
                                     },
                                     [this, &slot]() -> Result<std::optional<Tensor>> {
                                       ATUNNER_TRY(const auto known, tensors_.KnownOf(slot));
                                       return known ? std::optional(*known) : std::nullopt;
                                     }});
    }
    while (!operands.empty() && !operands.back()) operands.pop_back();
    return operands;
  }

  Status Build(const OnnxOperator& op, const OnnxNode& node, int64_t opset, OnnxScope& scope,
               const std::string& where) {
    builder_.SetLocation(where);
    OnnxCall call(builder_, node, opset, OperandsOf(node, scope, nullptr), cache_);
    const std::vector<Value> results = op.build(call, op.text);
    ATUNNER_RETURN_IF_ERROR(Checked(where));
    if (call.without_elements()) return DefineEmpty(node, *call.without_elements(), scope, where);
    for (size_t i = 0; i < std::min(results.size(), node.outputs.size()); ++i) {
      if (node.outputs[i].empty()) continue;
      OnnxSlot slot{results[i], nullptr, nullptr};
      if (const auto* constant = builder_.NodeOf(results[i]).As<graph::Constant>())
        slot.known = ElementsOf(*constant, builder_.TypeOf(results[i]));
      ATUNNER_RETURN_IF_ERROR(Define(node.outputs[i], std::move(slot), scope, where));
    }
    return {};
  }

  /// Computes the node's results from constants.
  Status Fold(const OnnxOperator& op, const OnnxNode& node, int64_t opset, OnnxScope& scope,
              const std::string& where) {
    GraphBuilder scratch("constants");
    scratch.SetLocation(where);
    OnnxCall call(scratch, node, opset, OperandsOf(node, scope, &scratch), cache_);
    const std::vector<Value> results = op.build(call, op.text);
    if (call.without_elements() && scratch.ok())
      return DefineEmpty(node, *call.without_elements(), scope, where);
    size_t made = 0;
    for (; made < std::min(results.size(), node.outputs.size()) && scratch.ok(); ++made)
      scratch.Output(fmt::format("y{}", made), scratch.Map("a", {results[made]}));
    auto graph = std::move(scratch).Finish();
    if (!graph) {
      graph.error().where = where;
      return std::unexpected(std::move(graph.error()));
    }
    ATUNNER_TRY(std::vector<Tensor> tensors, graph::Evaluate(*graph, {}));
    for (size_t i = 0; i < made; ++i) {
      if (node.outputs[i].empty()) continue;
      ATUNNER_RETURN_IF_ERROR(Define(
          node.outputs[i], {std::nullopt, std::make_shared<Tensor>(std::move(tensors[i])), nullptr},
          scope, where));
    }
    return {};
  }

  static Status DefineEmpty(const OnnxNode& node, DType dtype, OnnxScope& scope,
                            const std::string& where) {
    if (node.outputs.empty()) return {};
    auto empty = std::make_shared<Tensor>(Tensor{dtype, {0}, {}});
    return Define(node.outputs[0], {std::nullopt, std::move(empty), nullptr}, scope, where);
  }

  static Status Define(const std::string& name, OnnxSlot slot, OnnxScope& scope,
                       const std::string& where) {
    if (scope.insert_or_assign(name, std::move(slot)).second) return {};
    return Invalid("the value '" + name + "' is computed twice", where);
  }

  /// A branch whose condition is known takes the place of the node.
  Status AddIf(const OnnxNode& node, const Opsets& opsets, OnnxScope& scope,
               const std::string& where) {
    if (node.inputs.empty()) return Invalid("the condition is missing", where);
    ATUNNER_TRY(const auto known, tensors_.KnownOf(scope.find(node.inputs[0])->second));
    if (!known || known->cells.size() != 1)
      return Fail(ErrorCode::kUnsupported, "the condition is computed", where);
    const char* name = known->cells[0].whole != 0 ? "then_branch" : "else_branch";
    const auto branch = std::ranges::find(node.attributes, name, &OnnxAttribute::name);
    if (branch == node.attributes.end() || !branch->graph)
      return Invalid(fmt::format("the node has no {}", name), where);
    if (++depth_ > kDeepestCalls) return Invalid("branches are nested too deeply", where);
    AddInitializers(*branch->graph, scope);
    for (const OnnxNode& inner : branch->graph->nodes)
      ATUNNER_RETURN_IF_ERROR(AddNode(inner, opsets, scope));
    --depth_;
    const auto& outputs = branch->graph->outputs;
    for (size_t i = 0; i < std::min(outputs.size(), node.outputs.size()); ++i) {
      const auto value = scope.find(outputs[i].name);
      if (value == scope.end()) return Invalid("a result of the branch is not computed", where);
      ATUNNER_RETURN_IF_ERROR(Define(node.outputs[i], value->second, scope, where));
    }
    return {};
  }

  /// The body of a function takes the place of the call, in a scope of its own.
  Status Call(const OnnxFunction& function, const OnnxNode& node, OnnxScope& scope) {
    const std::string where = fmt::format("{}, node {}", where_, node.Title());
    if (++depth_ > kDeepestCalls) return Invalid("functions call each other too deeply", where);
    OnnxScope body;
    for (size_t i = 0; i < std::min(function.inputs.size(), node.inputs.size()); ++i) {
      if (node.inputs[i].empty()) continue;
      OnnxSlot& outer = scope.find(node.inputs[i])->second;
      // A weight becomes an input of the graph under its own name.
      if (!IsFoldable(outer)) (void)tensors_.ValueOf(node.inputs[i], outer);
      ATUNNER_RETURN_IF_ERROR(Checked(where));
      body.insert_or_assign(function.inputs[i], outer);
    }
    const Opsets& opsets = function.opsets.empty() ? model_.opsets : function.opsets;
    for (OnnxNode inner : function.nodes) {
      FillAttributes(function, node, inner);
      for (std::string& input : inner.inputs) {  // an input of the call that is left out
        const bool left_out = std::ranges::find(function.inputs, input) != function.inputs.end() &&
                              !body.contains(input);
        if (left_out) input.clear();
      }
      ATUNNER_RETURN_IF_ERROR(AddNode(inner, opsets, body));
    }
    --depth_;
    for (size_t i = 0; i < std::min(function.outputs.size(), node.outputs.size()); ++i) {
      const auto value = body.find(function.outputs[i]);
      if (value == body.end() || node.outputs[i].empty()) continue;
      ATUNNER_RETURN_IF_ERROR(Define(node.outputs[i], value->second, scope, where));
    }
    return {};
  }

  /// Attributes of the body that refer to attributes of the call.
  static void FillAttributes(const OnnxFunction& function, const OnnxNode& call, OnnxNode& inner) {
    for (OnnxAttribute& attribute : inner.attributes) {
      if (attribute.refers_to.empty()) continue;
      const std::string name = attribute.name;
      const auto given = std::ranges::find(call.attributes, attribute.refers_to,
                                           &OnnxAttribute::name);
      const auto fallback = std::ranges::find(function.defaults, attribute.refers_to,
                                              &OnnxAttribute::name);
      if (given != call.attributes.end())
        attribute = *given;
      else if (fallback != function.defaults.end())
        attribute = *fallback;
      else
        continue;
      attribute.name = name;
    }
    std::erase_if(inner.attributes,
                  [](const OnnxAttribute& attribute) { return !attribute.refers_to.empty(); });
  }

  Status AddOutputs(OnnxScope& scope) {
    const bool one = model_.graph.outputs.size() == 1;
    for (size_t i = 0; i < model_.graph.outputs.size(); ++i) {
      const std::string& name = model_.graph.outputs[i].name;
      const auto slot = scope.find(name);
      if (slot == scope.end())
        return Invalid(fmt::format("the result '{}' is not computed", name), where_);
      Value value = tensors_.ValueOf(name, slot->second);
      ATUNNER_RETURN_IF_ERROR(Checked(where_));
      const graph::Node& node = builder_.NodeOf(value);
      if (node.As<graph::Input>() || node.As<graph::Constant>())
        value = builder_.Map("a", {value}, node.type.shape);
      outputs_.push_back(
          {tensors_.Unused(one ? "y" : fmt::format("y{}", i)), OutputRole::kResult, ""});
      builder_.Output(outputs_.back().name, value);
    }
    return Checked(where_);
  }

  const OnnxModel& model_;
  std::string where_;
  const ImportOptions& options_;
  GraphBuilder builder_;
  OnnxTensors tensors_;
  LibraryCache cache_;
  std::vector<ModelOutput> outputs_;
  std::map<std::string, int> operators_;
  int depth_ = 0;
};

}  // namespace

Result<ImportedModel> ImportOnnx(std::string_view bytes, const std::string& name,
                                 const std::string& folder, const ImportOptions& options) {
  ATUNNER_TRY(const OnnxModel model, ReadOnnx(bytes, name));
  return OnnxImporter(model, name, folder, bytes, options).Import();
}

}  // namespace atunner::importers
