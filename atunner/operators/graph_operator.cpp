#include "atunner/operators/graph_operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "atunner/cuda_text/baseline_kernels.h"
#include "atunner/cuda_text/cuda_text.h"
#include "atunner/cuda_text/decisions.h"
#include "atunner/graph/compose.h"
#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/evaluate/slices.h"
#include "atunner/graph/library/library.h"
#include "atunner/graph/match/mask_density.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/text.h"
#include "atunner/model/schedule/renamed_sizes.h"

namespace atunner {
namespace {

using graph::Extent;
using graph::Node;
using graph::ValidGraph;

ArgSpec ArgOf(const std::string& name, Role role, const graph::TensorType& type) {
  ArgSpec arg{
      .name = name, .role = role, .dtype = type.dtype, .shape = {}, .value = {}, .fill = {}};
  for (const Extent& extent : type.shape) arg.shape.push_back(graph::ExprOf(extent));
  if (arg.shape.empty()) arg.shape.emplace_back(1);  // tensors of tasks have at least one axis
  return arg;
}

Status AddArguments(const ValidGraph& graph, KernelSpec& spec) {
  for (graph::NodeId id : graph.inputs())
    spec.args.push_back(ArgOf(graph.node(id).name, Role::kInput, graph.node(id).type));
  for (const graph::Output& output : graph.outputs()) {
    if (spec.FindArg(output.name))
      return Invalid("an input and an output are called '" + output.name + "'",
                     "graph " + graph.name(), "write output y = " + output.name);
    spec.args.push_back(ArgOf(output.name, Role::kOutput, graph.node(output.node).type));
  }
  return {};
}

/// Inputs that gathers and scatters use as indices are filled with indices within the axis.
void FillIndices(const ValidGraph& graph, KernelSpec& spec) {
  for (const Node& node : graph.nodes()) {
    const auto* gather = node.As<graph::Gather>();
    const auto* scatter = node.As<graph::Scatter>();
    if (!gather && !scatter) continue;
    const Extent& extent = graph.node(node.operands[0])
                               .type.shape[gather ? gather->axis : scatter->axis];
    const std::string& name = graph.node(node.operands[1]).name;
    for (ArgSpec& arg : spec.args) {
      if (arg.name == name)
        arg.fill = {Fill::Kind::kUniform, 0, static_cast<double>(extent.Bound(spec.dims).factor()),
                    "", ""};
    }
  }
}

/// The number of products that are summed in one element of a contraction.
Extent SummedCount(const ValidGraph& graph, const Node& node, const std::string& equation) {
  const size_t comma = equation.find(',');
  const size_t arrow = equation.find("->");
  Extent count(1);
  for (size_t i = 0; i < arrow; ++i) {
    const bool right = i > comma;
    const bool again = right && equation.find(equation[i]) < comma;
    if (i == comma || again || equation.find(equation[i], arrow) != std::string::npos) continue;
    count = count * graph.node(node.operands[right ? 1 : 0]).type.shape[right ? i - comma - 1 : i];
  }
  return count;
}

/// The number of products that are summed in one element of a node that is a contraction, a layout
/// operation of one or a fold of one; 0 for other nodes.
Extent ProductsOf(const ValidGraph& graph, graph::NodeId id) {
  const Node& node = graph.node(id);
  if (const auto* contract = node.As<graph::Contract>())
    return SummedCount(graph, node, contract->equation);
  const bool moved = node.As<graph::Reshape>() || node.As<graph::Transpose>() ||
                     node.As<graph::Reverse>();
  if (moved || node.As<graph::Slice>()) return ProductsOf(graph, node.operands[0]);
  const auto* fold = node.As<graph::Fold>();
  if (fold == nullptr) return Extent(0);
  // A fold's window has no symbols.
  const Extent window = graph.node(node.operands[0]).type.shape[fold->axis + 1];
  const int64_t times = fold->dilation > 1 ? window.factor()
                                           : (window.factor() + fold->stride - 1) / fold->stride;
  return ProductsOf(graph, node.operands[0]) * Extent(times);
}

/// Among the sums and means that a node depends on and that have fewer than `few` results, the
/// number of terms of the longest.
double LongestOfFew(const ValidGraph& graph, graph::NodeId id, const Dims& dims, int64_t few) {
  double longest = 0;
  std::vector<bool> needed(graph.nodes().size(), false);
  needed[id] = true;
  for (size_t i = static_cast<size_t>(id) + 1; i-- > 0;) {
    if (!needed[i]) continue;
    const Node& node = graph.nodes()[i];
    for (const graph::NodeId operand : node.operands) needed[operand] = true;
    const auto* reduce = node.As<graph::Reduce>();
    const bool sum = reduce &&
                     (reduce->op == graph::Combine::kSum || reduce->op == graph::Combine::kMean);
    const int64_t results = graph::ElementCount(node.type.shape).Bound(dims).factor();
    if (!sum || results >= few) continue;
    const Extent all = graph::ElementCount(graph.node(node.operands[0]).type.shape);
    longest = std::max(
        longest, static_cast<double>(all.Bound(dims).factor()) / static_cast<double>(results));
  }
  return longest;
}

/// An upper bound of the fraction of a node's elements that are not zeros of a pad: a kernel need
/// not multiply the others.
double ShareOf(const ValidGraph& graph, graph::NodeId id) {
  const Node& node = graph.node(id);
  const auto* pad = node.As<graph::Pad>();
  const auto* window = node.As<graph::Window>();
  const bool moved = node.As<graph::Reshape>() || node.As<graph::Transpose>() ||
                     node.As<graph::Reverse>();
  if (!moved && !window && !(pad && pad->value == 0)) return 1;
  const graph::NodeId operand = node.operands[0];
  // Axes with symbols are neither padded nor cut, so the ratio of the constant factors is enough.
  const auto count = [&](graph::NodeId of) {
    return static_cast<double>(graph::ElementCount(graph.node(of).type.shape).factor());
  };
  int64_t times = 1;  // the number of windows that contain an element
  if (window)
    times = window->dilation > 1 ? window->size
                                 : (window->size + window->stride - 1) / window->stride;
  return std::min(
      1.0, ShareOf(graph, operand) * count(operand) * static_cast<double>(times) / count(id));
}

/// A sum of counts, some of which are expressions over symbols.
class OperationCount {
 public:
  /// Adds `each` operations for each of `count` elements.
  void Add(double each, const Extent& count) {
    if (count.constant())
      known_ += each * static_cast<double>(count.factor());
    else
      open_[count.ToString()] += each;
  }
  Expr ToExpr() const {
    std::string text = fmt::format("{:.1f}", known_);
    for (const auto& [count, each] : open_) {
      if (each > 0) text += fmt::format(" + {} * {}", each, count);
    }
    return Expr::MustParse(text);
  }

 private:
  double known_ = 0;
  std::map<std::string, double> open_;  ///< operations per element, by the element count as text
};

/// The FLOP count over the task's dims: one for each scalar operator and element, one for each
/// element that is reduced, two for each product of a contraction. Sparse contractions count by
/// `density`.
Expr FlopsOf(const ValidGraph& graph, double density) {
  OperationCount total;
  const auto add = [&](double each, const Extent& count) { total.Add(each, count); };
  for (const Node& node : graph.nodes()) {
    const Extent count = graph::ElementCount(node.type.shape);
    if (const auto* map = node.As<graph::Map>()) add(graph::ScalarFlops(map->body), count);
    if (const auto* contract = node.As<graph::Contract>()) {
      const double share = std::min(ShareOf(graph, node.operands[0]),
                                    ShareOf(graph, node.operands[1]));
      add(2 * share * (contract->sparse ? density : 1),
          count * SummedCount(graph, node, contract->equation));
    }
    if (node.As<graph::Reduce>())
      add(1, graph::ElementCount(graph.node(node.operands[0]).type.shape));
  }
  return total.ToExpr();
}

/// The value of a count without symbols.
std::optional<int64_t> KnownCount(const std::string& count) {
  const auto value = Expr::MustParse(count).EvaluateInt({});
  return value ? std::optional(*value) : std::nullopt;
}

/// The number of elements of input `id` that must be read, as an expression; nullopt if all of
/// them. Only gathers and slices read a part. N random indices below V hit V (1 - e^(-N/V))
/// different elements, which is more than V · N / (V + N); the bound is used because it is exact
/// integer arithmetic. "0" if nothing reads the input.
std::optional<std::string> PartRead(const ValidGraph& graph, graph::NodeId id) {
  if (std::ranges::any_of(graph.outputs(),
                          [&](const graph::Output& output) { return output.node == id; }))
    return std::nullopt;
  int64_t known = 0;
  std::string most = "0";
  for (const Node& node : graph.nodes()) {
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (node.operands[i] != id) continue;
      const bool gathered = node.As<graph::Gather>() && i == 0;
      if (!gathered && !node.As<graph::Slice>()) return std::nullopt;
      const std::string all = graph::CountText(graph.node(id).type.shape);
      const std::string taken = graph::CountText(node.type.shape);
      const std::string part = gathered ? fmt::format("{0} * {1} // ({0} + {1})", all, taken)
                                        : taken;
      if (const auto count = KnownCount(part))
        known = std::max(known, *count);
      else
        most = most == "0" ? part : fmt::format("max({}, {})", most, part);
    }
  }
  if (most == "0") return std::to_string(known);
  return known == 0 ? most : fmt::format("max({}, {})", most, known);
}

/// The least number of bytes through DRAM; nullopt if every input is read as a whole, because that
/// is the default of a task. Counts without symbols are one number, because a model has hundreds of
/// inputs, and the text of an expression is limited.
std::optional<Expr> BytesOf(const ValidGraph& graph) {
  int64_t known = 0;
  std::string open;
  bool parts = false;
  const auto add = [&](const graph::TensorType& type, const std::string& elements) {
    if (const auto count = KnownCount(elements))
      known += static_cast<int64_t>(SizeOf(type.dtype)) * *count;
    else
      open += fmt::format(" + {} * ({})", SizeOf(type.dtype), elements);
  };
  for (graph::NodeId id : graph.inputs()) {
    const auto part = PartRead(graph, id);
    parts |= part.has_value();
    add(graph.node(id).type, part.value_or(graph::CountText(graph.node(id).type.shape)));
  }
  for (const graph::Output& output : graph.outputs())
    add(graph.node(output.node).type, graph::CountText(graph.node(output.node).type.shape));
  return parts ? std::optional(Expr::MustParse(std::to_string(known) + open)) : std::nullopt;
}

/// The type whose peak rate bounds the task: that of 8-bit operands of a contraction if there are
/// any, else that of the first float argument.
DType ComputeType(const ValidGraph& graph, const KernelSpec& spec) {
  for (const Node& node : graph.nodes()) {
    const Node* left = node.As<graph::Contract>() ? &graph.node(node.operands[0]) : nullptr;
    if (left != nullptr && left->As<graph::Input>() && SizeOf(left->type.dtype) == 1)
      return left->type.dtype;
  }
  for (const ArgSpec& arg : spec.args) {
    if (IsFloat(arg.dtype)) return arg.dtype;
  }
  return DType::kFloat32;
}

/// True if the graph has a symbol and no operation mixes elements along it. Families must know the
/// extents of axes that are reduced, scanned or moved innermost.
bool RowsAreIndependent(const ValidGraph& graph) {
  bool any = false;
  for (const Node& node : graph.nodes()) {
    for (const Extent& extent : node.type.shape) any |= !extent.constant();
    if (node.operands.empty()) continue;
    const graph::Shape& from = graph.node(node.operands[0]).type.shape;
    std::vector<int64_t> axes;
    if (const auto* reduce = node.As<graph::Reduce>()) axes = reduce->axes;
    if (const auto* scan = node.As<graph::Scan>()) axes = {scan->axis};
    if (const auto* transpose = node.As<graph::Transpose>()) axes = {transpose->order.back()};
    if (std::ranges::any_of(axes, [&](int64_t axis) { return !from[axis].constant(); }))
      return false;
  }
  return any;
}

/// The graph of a task that GraphOf has accepted before.
Result<ValidGraph> ParsedGraph(const KernelSpec& spec) {
  return graph::Parse(spec.oracle.graph, spec.name + ".atg");
}

class GraphTask : public Operator {
 public:
  const OperatorInfo& info() const override { return info_; }
  bool Serves(DType) const override { return true; }  // types are checked as the graph is built

  Status Reference(const KernelSpec& spec, const Dims& dims,
                   std::span<const std::vector<double>> inputs,
                   std::span<std::vector<double>> outputs) const override {
    ATUNNER_TRY(const ValidGraph open, ParsedGraph(spec));
    ATUNNER_TRY(const ValidGraph graph, graph::Specialise(open, dims));
    std::vector<graph::Tensor> tensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const graph::TensorType& type = graph.node(graph.inputs()[i]).type;
      std::vector<int64_t> shape;
      for (const Extent& extent : type.shape) shape.push_back(extent.factor());
      tensors.push_back(graph::Tensor::Of(type.dtype, std::move(shape), inputs[i]));
    }
    ATUNNER_TRY(const std::vector<graph::Tensor> computed, graph::Evaluate(graph, tensors));
    for (size_t i = 0; i < computed.size(); ++i) outputs[i] = computed[i].Reals();
    return {};
  }
  std::optional<EqualTasks> SplitIntoEqualTasks(
      const KernelSpec& spec, const std::function<bool(const KernelSpec&)>& fits) const override {
    const auto open = ParsedGraph(spec);
    const auto graph = open ? graph::Specialise(*open, spec.dims) : open;
    if (!graph) return std::nullopt;
    for (const int64_t count : graph::SliceCounts(*graph)) {
      const auto slice = graph::SliceOf(*graph, count);
      const auto each = slice ? SpecOfGraph(*slice, {})
                              : Result<KernelSpec>(Invalid("parts that meet"));
      if (each && fits(*each)) return EqualTasks{*each, count};
    }
    return std::nullopt;
  }

 protected:
  GraphTask() = default;
  explicit GraphTask(OperatorInfo info) : info_(std::move(info)) {}
  Status Describe(const OperatorRequest&, KernelSpec&) const override {
    return Invalid("a task of a graph is made by SpecOfGraph");
  }
  RenderedKernel Baseline(const KernelSpec& spec, BaselineForm form) const override {
    // The caller has checked the task with GraphOf, so there are baseline kernels.
    const ValidGraph graph = graph::WithSymbolsPrefixed(ParsedGraph(spec).value(), kSizePrefix);
    RenderedKernel plain = graph::BaselineKernels(graph, form).value();
    ATUNNER_CHECK(RestoreSizeNames(plain.plan, spec.dims).has_value());
    return plain;
  }
  double ProductsSummed(const KernelSpec& spec, const Dims& dims,
                        std::string_view output) const override {
    const ValidGraph graph = ParsedGraph(spec).value();
    const auto found = std::ranges::find(graph.outputs(), output, &graph::Output::name);
    if (found == graph.outputs().end()) return 0;
    return static_cast<double>(ProductsOf(graph, found->node).Bound(dims).factor());
  }
  double TermsOfFewSums(const KernelSpec& spec, const Dims& dims, std::string_view output,
                        int64_t few) const override {
    const ValidGraph graph = ParsedGraph(spec).value();
    const auto found = std::ranges::find(graph.outputs(), output, &graph::Output::name);
    return found == graph.outputs().end() ? 0 : LongestOfFew(graph, found->node, dims, few);
  }
  std::vector<graph::StepRounding> Roundings(const KernelSpec& spec) const override {
    return graph::BaselineRoundings(ParsedGraph(spec).value(), BaselineForm::kErrorBaseline)
        .value();
  }
  std::optional<DecisionKernels> Decisions(const KernelSpec& spec) const override {
    const ValidGraph graph = ParsedGraph(spec).value();
    if (!graph::HasDataDependentDecisions(graph)) return std::nullopt;
    DecisionKernels decisions{
        Baseline(spec, BaselineForm::kStoredDecisions),
        graph::BaselineRoundings(graph, BaselineForm::kStoredDecisions).value(),
        {}};
    for (const graph::Output& output : graph.outputs()) {
      if (graph::IsIndexValued(graph, output.node)) decisions.index_outputs.insert(output.name);
    }
    return decisions;
  }
  OperatorInfo info_;
};

class OracleOfGraphs : public GraphTask {};

/// An operator of the library.
class LibraryTask : public GraphTask {
 public:
  explicit LibraryTask(graph::Found found)
      : GraphTask({found.op->name + (found.backward ? "_backward" : ""),
                   found.op->signature + ": " + found.op->meaning,
                   found.op->shape_help,
                   {},
                   found.op->example}),
        found_(found) {
    for (const graph::Attribute& each : found.op->attributes)
      info_.attributes.push_back({each.name, each.fallback, each.meaning});
    if (found.backward)
      info_.attributes.push_back({graph::kWithRespectTo.name, graph::kWithRespectTo.fallback,
                                  graph::kWithRespectTo.meaning});
  }

 protected:
  Status Describe(const OperatorRequest& request, KernelSpec& spec) const override {
    graph::Request wanted{request.dtype, request.shapes, spec.attributes, true};
    auto open = graph::Build(found_, wanted);
    wanted.open_rows = false;
    // The number of rows becomes a symbol if rows are independent.
    ATUNNER_TRY(const ValidGraph graph,
                open&& RowsAreIndependent(*open) ? std::move(open) : graph::Build(found_, wanted));
    const Attributes attributes = spec.attributes;
    ATUNNER_TRY(spec, SpecOfGraph(graph, {}));
    spec.attributes = attributes;
    return {};
  }

 private:
  graph::Found found_;
};

}  // namespace

Result<KernelSpec> SpecOfGraph(const ValidGraph& given, const Dims& dims) {
  const ValidGraph graph = graph::FuseMaps(given, /*through_roundings=*/false);
  KernelSpec spec;
  spec.name = graph.name();
  spec.dims = dims;
  for (const auto& [symbol, range] : graph.symbols()) spec.dims.try_emplace(symbol, range.high);
  ATUNNER_TRY(const ValidGraph checked, graph::Specialise(graph, spec.dims));
  ATUNNER_RETURN_IF_ERROR(AddArguments(graph, spec));
  FillIndices(graph, spec);
  spec.oracle.kind = Oracle::Kind::kGraph;
  spec.oracle.graph = graph::Print(graph);
  spec.flops = FlopsOf(graph, graph::MaskDensity(checked));
  spec.bytes = BytesOf(graph);
  spec.compute_dtype = ComputeType(graph, spec);
  ATUNNER_TRY(const RenderedKernel plain,
              graph::BaselineKernels(graph, graph::BaselineForm::kNaive));
  return spec;
}

Result<ValidGraph> GraphOf(const KernelSpec& spec) {
  ATUNNER_TRY(ValidGraph graph, graph::Parse(spec.oracle.graph, spec.name + ".atg"));
  ATUNNER_TRY(const KernelSpec made, SpecOfGraph(graph, spec.dims));
  const auto same = [](const ArgSpec& a, const ArgSpec& b) {
    return a.name == b.name && a.role == b.role && a.dtype == b.dtype && a.shape == b.shape;
  };
  if (made.dims != spec.dims || !std::ranges::equal(made.args, spec.args, same))
    return Invalid("the task's arguments are not those of its graph", spec.name);
  return graph;
}

std::optional<std::vector<std::string>> SourcesOf(const KernelSpec& spec, std::string_view output) {
  if (spec.oracle.kind != Oracle::Kind::kGraph) return std::nullopt;
  const auto graph = ParsedGraph(spec);
  if (!graph) return std::nullopt;
  const auto found = std::ranges::find(graph->outputs(), output, &graph::Output::name);
  if (found == graph->outputs().end()) return std::nullopt;
  const auto is_single = [&](graph::NodeId id) {
    return graph::ElementCount(graph->node(id).type.shape).one();
  };
  const std::vector<bool> needed = graph::NeededFor(*graph, {found->node}, [&](graph::NodeId id) {
    return is_single(id) && !is_single(found->node);
  });
  std::vector<std::string> names;
  for (graph::NodeId id : graph->inputs()) {
    if (needed[id]) names.push_back(graph->node(id).name);
  }
  return names;
}

const Operator& GraphOracle() {
  static const OracleOfGraphs instance;
  return instance;
}

const Operator* FindGraphOperator(std::string_view name) {
  static const auto tasks = [] {
    std::map<const graph::LibraryOperator*, std::pair<LibraryTask, LibraryTask>> all;
    for (const graph::LibraryOperator& op : graph::Library())
      all.emplace(&op, std::pair(LibraryTask({&op, false}), LibraryTask({&op, true})));
    return all;
  }();
  const auto found = graph::FindInLibrary(name);
  if (!found) return nullptr;
  const auto& [forward, backward] = tasks.at(found->op);
  return found->backward ? &backward : &forward;
}

std::vector<const Operator*> GraphOperators() {
  std::vector<const Operator*> all;
  for (const graph::LibraryOperator& op : graph::Library())
    all.push_back(FindGraphOperator(op.name));
  return all;
}

}  // namespace atunner
