#include "atunner/codegen/reduction_program.h"

#include <algorithm>

#include "atunner/codegen/inlined_values.h"
#include "atunner/graph/rewrite.h"

namespace atunner {
namespace {

using graph::Combine;
using graph::Node;
using graph::NodeId;
using graph::Reduce;
using graph::Shape;
using Kind = ReductionProgram::Kind;

bool AllOnes(const Shape& shape) {
  return std::ranges::all_of(shape, [](const graph::Extent& extent) { return extent.one(); });
}

class Maker {
 public:
  Maker(const graph::ValidGraph& graph, bool online)
      : program_{.graph = graph::FuseMaps(graph::WithKeptRows(
                     graph::WithoutSingleUpdates(graph::WithoutPlaces(graph::WithoutThinProducts(graph))))),
                 .space = {},
                 .steps = {}} {
    if (online) FindExponentials();
  }

  std::optional<ReductionProgram> Run() {
    if (!FindSpace()) return std::nullopt;
    program_.steps.resize(nodes().size());
    for (size_t id = 0; id < nodes().size(); ++id) {
      if (!Classify(static_cast<NodeId>(id))) return std::nullopt;
    }
    for (const auto& output : program_.graph.outputs()) {
      const Node& node = program_.graph.node(output.node);
      const bool element = KindOf(output.node) == Kind::kElement;
      const bool fits = element ? node.type.shape == program_.space : IsRowShape(node.type.shape);
      if (node.As<graph::Input>() || !fits) return std::nullopt;
    }
    return std::move(program_);
  }

 private:
  const std::vector<Node>& nodes() const { return program_.graph.nodes(); }
  Kind KindOf(NodeId id) const { return program_.steps[id].kind; }

  void FindExponentials() {
    InlinedValues values(program_.graph);
    const auto operand_of_max = [&](NodeId id) {
      const auto* reduce = program_.graph.node(id).As<Reduce>();
      return reduce && reduce->op == Combine::kMax ? program_.graph.node(id).operands[0] : NodeId{-1};
    };
    for (size_t id = 0; id < nodes().size(); ++id) {
      const auto* reduce = nodes()[id].As<Reduce>();
      if (!reduce || reduce->op != Combine::kSum || nodes()[id].type.dtype == DType::kFloat64) continue;
      const graph::ScalarNode power = values.At(values.Of(nodes()[id].operands[0]));
      if (power.op != graph::ScalarOp::kExp) continue;
      const std::optional<int> guarded = values.WhereDifferent(power.args[0]);
      const auto top = values.Subtrahend(guarded.value_or(power.args[0]), operand_of_max);
      if (!top) continue;
      program_.exponentials[static_cast<NodeId>(id)] = *top;
      if (guarded) program_.equals.insert(static_cast<NodeId>(id));
    }
  }

  /// The first reduction says what a row is.
  bool FindSpace() {
    const auto first = std::ranges::find_if(nodes(), [](const Node& node) { return node.As<Reduce>() != nullptr; });
    if (first == nodes().end()) return false;
    program_.space = program_.graph.node(first->operands[0]).type.shape;
    program_.row_axes = program_.space.size() - first->As<Reduce>()->axes.size();
    const graph::Extent columns = graph::ElementCount(program_.ColumnSpace());
    program_.columns = columns.factor();
    kept_ = program_.RowSpace();
    kept_.resize(program_.space.size(), graph::Extent(1));
    return columns.constant() && columns.factor() < INT32_MAX / 64;
  }

  bool Classify(NodeId id) {
    const Node& node = program_.graph.node(id);
    ReductionProgram::Step& step = program_.steps[id];
    if (node.As<graph::Input>()) return IsRowInput(node.type.shape);
    for (NodeId operand : node.operands) {
      const ReductionProgram::Step& from = program_.steps[operand];
      step.pass = std::max(step.pass, from.pass + (nodes()[operand].As<Reduce>() ? 1 : 0));
    }
    if (const auto online = program_.exponentials.find(id); online != program_.exponentials.end())
      step.pass = program_.steps[online->second].pass;
    if (const auto* reduce = node.As<Reduce>()) return ClassifyReduce(node, *reduce, step);
    if (const auto* gather = node.As<graph::Gather>()) return ClassifyGather(node, *gather, step);
    if (node.As<graph::Reshape>()) {
      step.kind = Kind::kRow;
      return IsRowValue(node.operands[0]) &&
             (IsRowShape(node.type.shape) || graph::ElementCount(node.type.shape).one());
    }
    const auto* map = node.As<graph::Map>();
    return map && ClassifyMap(node, *map, step);
  }

  /// Along the elements of a row an input changes everywhere or nowhere.
  bool IsRowInput(const Shape& shape) const {
    const Shape columns = program_.ColumnPart(shape);
    return graph::BroadcastsTo(shape, program_.space) && (AllOnes(columns) || columns == program_.ColumnSpace());
  }

  bool ClassifyReduce(const Node& node, const Reduce& reduce, ReductionProgram::Step& step) {
    const bool place = reduce.op == Combine::kArgMax || reduce.op == Combine::kArgMin;
    const bool same = program_.graph.node(node.operands[0]).type.shape == program_.space &&
                      reduce.axes.size() == program_.space.size() - program_.row_axes &&
                      reduce.axes.front() == static_cast<int64_t>(program_.row_axes);
    step.kind = Kind::kRow;
    program_.passes = std::max(program_.passes, step.pass + 1);
    return same && !place && KindOf(node.operands[0]) == Kind::kElement;
  }

  /// One element of each row, at a place that is known before the row is read.
  bool ClassifyGather(const Node& node, const graph::Gather& gather, ReductionProgram::Step& step) {
    step.kind = Kind::kRow;
    return gather.axis == static_cast<int64_t>(program_.row_axes) && gather.batch == gather.axis &&
           node.type.shape == kept_ && program_.graph.node(node.operands[0]).type.shape == program_.space &&
           program_.columns > 1 && IsRowValue(node.operands[1]) && program_.steps[node.operands[1]].pass == 0 &&
           !nodes()[node.operands[1]].As<Reduce>();
  }

  bool IsRow(NodeId id) const { return !nodes()[id].As<graph::Input>() && KindOf(id) == Kind::kRow; }
  /// Also an input that all elements of a row share.
  bool IsRowValue(NodeId id) const {
    const bool shared = AllOnes(program_.ColumnPart(nodes()[id].type.shape));
    return IsRow(id) || (nodes()[id].As<graph::Input>() && shared && program_.columns > 1);
  }
  bool IsRowShape(const Shape& shape) const { return shape == kept_ || shape == program_.RowSpace(); }

  bool ClassifyMap(const Node& node, const graph::Map& map, ReductionProgram::Step& step) {
    const bool rows = std::ranges::any_of(node.operands, [this](NodeId id) { return IsRow(id); });
    const bool places = map.body.Uses(graph::ScalarOp::kIndex) || map.body.Uses(graph::ScalarOp::kExtent);
    const bool only_rows =
        !node.operands.empty() && std::ranges::all_of(node.operands, [this](NodeId id) { return IsRowValue(id); });
    if (node.type.shape == program_.space && !(program_.columns == 1 && only_rows)) {
      // A value per row takes part as it broadcasts: where its reduced axes are kept.
      return std::ranges::all_of(node.operands, [&](NodeId id) {
        return !IsRow(id) || nodes()[id].type.shape == kept_ || graph::ElementCount(nodes()[id].type.shape).one();
      });
    }
    const bool single = graph::ElementCount(node.type.shape).one() && program_.columns > 1 && only_rows;
    if ((IsRowShape(node.type.shape) && (rows || program_.columns > 1)) || single) {
      step.kind = Kind::kRow;
      return !places && only_rows;
    }
    // Smaller ones (a weight prepared once) are computed where they are used.
    return !places && !rows && graph::BroadcastsTo(node.type.shape, program_.space);
  }

  ReductionProgram program_;
  Shape kept_;
};

}  // namespace

Shape ReductionProgram::RowPart(const Shape& shape) const {
  const size_t reduced = space.size() - row_axes;
  if (shape.size() <= reduced) return {};
  return {shape.begin(), shape.end() - static_cast<int64_t>(reduced)};
}

Shape ReductionProgram::ColumnPart(const Shape& shape) const {
  const size_t reduced = std::min(shape.size(), space.size() - row_axes);
  return {shape.end() - static_cast<int64_t>(reduced), shape.end()};
}

std::vector<NodeId> ReductionProgram::WantedIn(int pass) const {
  std::vector<NodeId> wanted;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const bool alone = !exponentials.contains(static_cast<NodeId>(id));
    if (graph.nodes()[id].As<Reduce>() && steps[id].pass == pass && alone)
      wanted.push_back(graph.nodes()[id].operands[0]);
  }
  if (pass < passes) return wanted;
  for (const auto& output : graph.outputs()) {
    if (steps[output.node].kind == Kind::kElement) wanted.push_back(output.node);
  }
  return wanted;
}

std::vector<NodeId> ReductionProgram::ElementsFor(const std::vector<NodeId>& wanted) const {
  std::vector<bool> needed(graph.nodes().size(), false);
  for (NodeId id : wanted) needed[id] = true;
  std::vector<NodeId> order;
  for (size_t id = needed.size(); id-- > 0;) {
    if (!needed[id] || steps[id].kind != Kind::kElement) continue;
    order.push_back(static_cast<NodeId>(id));
    for (NodeId operand : graph.nodes()[id].operands) needed[operand] = true;
  }
  std::ranges::reverse(order);
  return order;
}

std::optional<ReductionProgram> MakeReductionProgram(const graph::ValidGraph& graph, bool online) {
  return Maker(graph, online).Run();
}

}  // namespace atunner
