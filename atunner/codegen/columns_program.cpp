#include "atunner/codegen/columns_program.h"

#include <algorithm>
#include <functional>

#include "atunner/codegen/columns_text.h"
#include "atunner/codegen/graph_layout.h"
#include "atunner/codegen/inlined_values.h"
#include "atunner/graph/rewrite.h"

namespace atunner {
namespace {

using graph::Combine;
using graph::NodeId;
using graph::Reduce;
using graph::Shape;

/// The first reduction says which axes are meant.
bool FindSpace(ColumnsProgram& program) {
  for (const graph::Node& node : program.graph.nodes()) {
    const auto* reduce = node.As<Reduce>();
    if (!reduce) continue;
    program.space = program.graph.node(node.operands[0]).type.shape;
    program.reduced.resize(program.space.size(), false);
    for (int64_t axis : reduce->axes) program.reduced[axis] = true;
    return graph::ElementCount(program.Part(true)).constant();
  }
  return false;
}

/// m, if the node's value is (x - m)².
std::optional<NodeId> CentreOfSquare(InlinedValues& values, NodeId id,
                                     const std::function<NodeId(NodeId)>& operand_of) {
  const graph::ScalarNode square = values.At(values.Of(id));
  if (square.op != graph::ScalarOp::kMultiply || square.args[0] != square.args[1]) return std::nullopt;
  return values.Subtrahend(square.args[0], operand_of);
}

void FindSpreads(ColumnsProgram& program) {
  InlinedValues values(program.graph);
  const auto operand_of_mean = [&](NodeId id) {
    const graph::Node& node = program.graph.node(id);
    const auto* reduce = node.As<Reduce>();
    return reduce && reduce->op == Combine::kMean ? node.operands[0] : NodeId{-1};
  };
  for (size_t id = 0; id < program.graph.nodes().size(); ++id) {
    const graph::Node& node = program.graph.nodes()[id];
    const auto* reduce = node.As<Reduce>();
    if (!reduce || (reduce->op != Combine::kMean && reduce->op != Combine::kSum)) continue;
    const auto centre = CentreOfSquare(values, node.operands[0], operand_of_mean);
    if (centre) program.spreads[static_cast<NodeId>(id)] = *centre;
  }
}

bool FindPasses(ColumnsProgram& program) {
  const auto& nodes = program.graph.nodes();
  program.passes.resize(nodes.size(), -1);
  std::vector<int> first(nodes.size(), 0);  // pass in which a value is known
  for (size_t id = 0; id < nodes.size(); ++id) {
    for (NodeId operand : nodes[id].operands) first[id] = std::max(first[id], first[operand]);
    const auto* reduce = nodes[id].As<Reduce>();
    if (!reduce) continue;
    std::vector<bool> reduced(program.space.size(), false);
    for (int64_t axis : reduce->axes) reduced[axis] = true;
    if (reduce->op == Combine::kArgMax || reduce->op == Combine::kArgMin || reduced != program.reduced ||
        program.graph.node(nodes[id].operands[0]).type.shape != program.space)
      return false;
    const auto spread = program.spreads.find(static_cast<NodeId>(id));
    if (spread != program.spreads.end()) first[id] = program.passes[spread->second];
    program.passes[id] = first[id]++;
    program.pass_count = std::max(program.pass_count, first[id]);
  }
  return true;
}

bool FindOutputs(ColumnsProgram& program) {
  const Shape kept = program.KeptShape();
  const Shape squeezed = program.Part(false);
  for (graph::Output output : program.graph.outputs()) {
    // Another shape of the same elements: they lie in the same order.
    while (program.graph.node(output.node).As<graph::Reshape>()) {
      const NodeId operand = program.graph.node(output.node).operands[0];
      if (program.graph.node(output.node).type.shape == program.space) break;
      output.node = operand;
    }
    const Shape& shape = program.graph.node(output.node).type.shape;
    if (shape == program.space)
      program.element_outputs.push_back(output);
    else if (shape == kept || shape == squeezed)
      program.kept_outputs.push_back(output);
    else
      return false;
  }
  return true;
}

/// Small windows overlap: whoever computes all of a place's window reads every element from a cache.
bool IsPooling(const ColumnsProgram& program) {
  const bool windows = std::ranges::any_of(
      program.graph.nodes(), [](const auto& node) { return node.template As<graph::Window>() != nullptr; });
  return windows && graph::ElementCount(program.Part(true)).factor() < 1024;
}

bool Serves(const ColumnsProgram& program) {
  const auto served = [&](NodeId from) {
    return IsServed(program.graph, from, 64, [&](NodeId id) { return program.passes[id] >= 0; });
  };
  for (size_t id = 0; id < program.passes.size(); ++id) {
    if (program.passes[id] >= 0 && !served(program.graph.nodes()[id].operands[0])) return false;
  }
  return std::ranges::all_of(program.graph.outputs(), [&](const auto& output) { return served(output.node); });
}

}  // namespace

Shape ColumnsProgram::Part(bool of_reduced) const {
  Shape part;
  for (size_t axis = 0; axis < space.size(); ++axis) {
    if (reduced[axis] == of_reduced) part.push_back(space[axis]);
  }
  return part;
}

int ColumnsProgram::InnerAxis() const {
  for (size_t axis = space.size(); axis-- > 0;) {
    if (!space[axis].one()) return static_cast<int>(axis);
  }
  return -1;
}

std::vector<NodeId> ColumnsProgram::ReductionsOf(int pass) const {
  std::vector<NodeId> found;
  for (size_t id = 0; id < passes.size(); ++id) {
    if (passes[id] == pass && !spreads.contains(static_cast<NodeId>(id))) found.push_back(static_cast<NodeId>(id));
  }
  return found;
}

std::vector<NodeId> ColumnsProgram::SpreadsOf(NodeId mean) const {
  std::vector<NodeId> found;
  for (const auto& [spread, of] : spreads) {
    if (of == mean) found.push_back(spread);
  }
  return found;
}

Shape ColumnsProgram::KeptShape() const {
  Shape shape = space;
  for (size_t axis = 0; axis < space.size(); ++axis) {
    if (reduced[axis]) shape[axis] = graph::Extent(1);
  }
  return shape;
}

std::optional<ColumnsProgram> MakeColumnsProgram(const graph::ValidGraph& graph) {
  ColumnsProgram program{
      .graph = graph::MergeAxes(graph::FuseMaps(graph::WithoutPlaces(graph::WithoutThinProducts(graph)))),
      .space = {},
      .reduced = {},
      .passes = {}};
  if (!FindSpace(program)) return std::nullopt;
  FindSpreads(program);
  if (!FindPasses(program) || !FindOutputs(program) || IsPooling(program) || !Serves(program)) return std::nullopt;
  const int inner = program.InnerAxis();
  program.kept_inside = inner < 0 || !program.reduced[inner];
  return ColumnsCanBeWritten(program) ? std::optional(std::move(program)) : std::nullopt;
}

}  // namespace atunner
