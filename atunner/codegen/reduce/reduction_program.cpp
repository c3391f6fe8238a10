#include "atunner/codegen/reduce/reduction_program.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "atunner/codegen/template/graph_layout.h"
#include "atunner/graph/compose.h"
#include "atunner/graph/inlined_values.h"
#include "atunner/graph/match/inline_work.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/rewriter.h"

namespace atunner {
namespace {

using graph::Combine;
using graph::Coordinates;
using graph::Node;
using graph::NodeId;
using graph::Reduce;
using graph::Shape;

/// Inputs that are only used in one other shape get it, as group norms use theirs: x[N, C, H, W] as
/// [N, G, C / G, H, W]. Their elements keep their order.
class InputsAsUsed : public graph::Rewriter {
 public:
  explicit InputsAsUsed(const graph::ValidGraph& graph) : Rewriter(graph) {
    std::vector<bool> otherwise(graph.nodes().size(), false);
    used_.resize(graph.nodes().size());
    for (const Node& node : graph.nodes()) {
      for (NodeId operand : node.operands) {
        std::optional<Shape>& used = used_[operand];
        if (!node.As<graph::Reshape>() || (used && *used != node.type.shape))
          otherwise[operand] = true;
        used = node.type.shape;
      }
    }
    for (const graph::Output& output : graph.outputs()) otherwise[output.node] = true;
    for (size_t id = 0; id < used_.size(); ++id) {
      if (otherwise[id]) used_[id].reset();
    }
  }

 private:
  Shape InputShape(NodeId id) override { return used_[id].value_or(graph_.node(id).type.shape); }
  graph::Value Rewrite(NodeId id, std::vector<graph::Value> operands) override {
    const Node& node = graph_.node(id);
    if (node.As<graph::Reshape>() && builder_.TypeOf(operands[0]).shape == node.type.shape)
      return operands[0];
    return builder_.Copy(node, std::move(operands));
  }

  std::vector<std::optional<Shape>> used_;  ///< by node
};

std::vector<bool> AxesOf(const Reduce& reduce, size_t rank) {
  std::vector<bool> reduced(rank, false);
  for (int64_t axis : reduce.axes) reduced[axis] = true;
  return reduced;
}

/// The first reduction says which axes are meant.
bool FindSpace(ReductionProgram& program) {
  for (const Node& node : program.graph.nodes()) {
    const auto* reduce = node.As<Reduce>();
    if (!reduce) continue;
    program.space = program.graph.node(node.operands[0]).type.shape;
    program.reduced = AxesOf(*reduce, program.space.size());
    const int inner = program.InnerAxis();
    program.kept_inside = inner < 0 || !program.reduced[inner];
    return graph::ElementCount(program.Part(true)).constant();
  }
  return false;
}

/// For graph::InlinedValues: the operand of a reduction of that kind.
std::function<NodeId(NodeId)> OperandOf(const graph::ValidGraph& graph, Combine op) {
  return [&graph, op](NodeId id) {
    const auto* reduce = graph.node(id).As<Reduce>();
    return reduce && reduce->op == op ? graph.node(id).operands[0] : NodeId{-1};
  };
}

/// Means and sums of (x - m)², where m is the mean of x.
void FindSpreads(ReductionProgram& program) {
  graph::InlinedValues values(program.graph);
  for (size_t id = 0; id < program.graph.nodes().size(); ++id) {
    const auto* reduce = program.graph.nodes()[id].As<Reduce>();
    if (!reduce || (reduce->op != Combine::kMean && reduce->op != Combine::kSum)) continue;
    const graph::ScalarNode square = values.At(values.Of(program.graph.nodes()[id].operands[0]));
    if (square.op != graph::ScalarOp::kMultiply || square.args[0] != square.args[1]) continue;
    const auto centre = values.Subtrahend(square.args[0], OperandOf(program.graph, Combine::kMean));
    if (centre) program.beside[static_cast<NodeId>(id)] = *centre;
  }
}

void FindExponentials(ReductionProgram& program) {
  graph::InlinedValues values(program.graph);
  for (size_t at = 0; at < program.graph.nodes().size(); ++at) {
    const Node& node = program.graph.nodes()[at];
    const auto id = static_cast<NodeId>(at);
    const auto* reduce = node.As<Reduce>();
    if (!reduce || reduce->op != Combine::kSum || node.type.dtype == DType::kFloat64) continue;
    const graph::ScalarNode power = values.At(values.Of(node.operands[0]));
    if (power.op != graph::ScalarOp::kExp) continue;
    const std::optional<int> guarded = values.WhereDifferent(power.args[0]);
    const auto top = values.Subtrahend(guarded.value_or(power.args[0]),
                                       OperandOf(program.graph, Combine::kMax));
    if (!top) continue;
    program.beside[id] = *top;
    if (guarded) program.equals.insert(id);
  }
}

bool TakesPlace(const Node& node) {
  const auto* reduce = node.As<Reduce>();
  return reduce && (reduce->op == Combine::kArgMax || reduce->op == Combine::kArgMin);
}

bool FindPasses(ReductionProgram& program) {
  const auto& nodes = program.graph.nodes();
  program.passes.resize(nodes.size(), -1);
  program.known.resize(nodes.size(), 0);
  for (size_t id = 0; id < nodes.size(); ++id) {
    int& first = program.known[id];
    for (NodeId operand : nodes[id].operands) first = std::max(first, program.known[operand]);
    const auto* reduce = nodes[id].As<Reduce>();
    if (!reduce) continue;
    if (program.graph.node(nodes[id].operands[0]).type.shape != program.space ||
        AxesOf(*reduce, program.space.size()) != program.reduced)
      return false;
    const auto beside = program.beside.find(static_cast<NodeId>(id));
    if (beside != program.beside.end()) first = program.passes[beside->second];
    program.passes[id] = first++;
    program.pass_count = std::max(program.pass_count, first);
  }
  return true;
}

bool FindOutputs(ReductionProgram& program) {
  const Shape kept = program.KeptShape();
  const Shape squeezed = program.Part(false);
  for (graph::Output output : program.graph.outputs()) {
    // A reshape has the same elements in the same order. One that gives an output its axes of
    // extent 1 has become a reshape from the space to itself.
    const auto moves = [&](const Node& node) {
      return node.As<graph::Reshape>() &&
             (node.type.shape != program.space ||
              program.graph.node(node.operands[0]).type.shape == program.space);
    };
    while (moves(program.graph.node(output.node)))
      output.node = program.graph.node(output.node).operands[0];
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

/// True for pooling. Small windows overlap: a thread that computes a whole window reads most
/// elements from a cache.
bool IsPooling(const ReductionProgram& program) {
  const bool windows = std::ranges::any_of(program.graph.nodes(), [](const auto& node) {
    return node.template As<graph::Window>() != nullptr;
  });
  return windows && graph::ElementCount(program.Part(true)).factor() < 1024;
}

bool Serves(const ReductionProgram& program) {
  const auto served = [&](NodeId from) {
    return graph::CanInline(program.graph, from, 64,
                            [&](NodeId id) { return program.passes[id] >= 0; });
  };
  for (size_t id = 0; id < program.passes.size(); ++id) {
    if (program.passes[id] >= 0 && !served(program.graph.nodes()[id].operands[0])) return false;
  }
  return std::ranges::all_of(program.graph.outputs(),
                             [&](const auto& output) { return served(output.node); });
}

std::optional<ReductionProgram> MakeProgram(
    const graph::ValidGraph& graph, const std::function<void(ReductionProgram&)>& find_beside,
    bool places = false) {
  graph::ValidGraph used = InputsAsUsed(graph::WithoutVectorProducts(InputsAsUsed(graph).Run()))
                               .Run();
  // What is left in `apart` takes the places of computed values, which are rounded and stored
  // first.
  graph::ValidGraph apart = graph::WithoutArgReductions(used);
  if (std::ranges::any_of(apart.nodes(), TakesPlace)) return std::nullopt;
  if (!places) used = std::move(apart);
  ReductionProgram program{.graph = graph::MergeAxes(graph::FuseMaps(graph::WithReducedAxesKept(
                               graph::WithoutSingleElementScatters(used))))};
  if (!FindSpace(program)) return std::nullopt;
  // Places are counted in 32 bits.
  if (places && graph::ElementCount(program.Part(true)).factor() >= INT32_MAX) return std::nullopt;
  find_beside(program);
  if (!FindPasses(program) || !FindOutputs(program) || !Serves(program)) return std::nullopt;
  return program;
}

/// By node: false for what only gives an output another shape.
std::vector<bool> ComputedNodes(const ReductionProgram& program) {
  std::vector<NodeId> wanted;
  for (const auto* outputs : {&program.element_outputs, &program.kept_outputs}) {
    for (const graph::Output& output : *outputs) wanted.push_back(output.node);
  }
  return graph::NeededFor(program.graph, wanted);
}

/// True if a last-axis kernel can compute the node: an element of a row is computed from inputs at
/// its own index and from values that the row shares; those from inputs and from one element of the
/// row, at an index that is known before the row is read.
bool IsOfRows(const ReductionProgram& program, NodeId id) {
  const Node& node = program.graph.node(id);
  const auto is_shared = [&](NodeId operand) { return program.IsShared(operand); };
  const Shape& shape = node.type.shape;
  if (node.As<graph::Input>()) {
    const size_t columns = program.Part(true).size();
    const Shape last(shape.end() - static_cast<int64_t>(std::min(columns, shape.size())),
                     shape.end());
    const bool same = std::ranges::all_of(last, [](const graph::Extent& e) { return e.one(); });
    return program.IsShared(id) ||
           (graph::BroadcastsTo(shape, program.space) && (same || last == program.Part(true)));
  }
  if (node.As<Reduce>()) return true;
  if (node.As<graph::Reshape>()) return program.IsShared(id) && is_shared(node.operands[0]);
  if (const auto* gather = node.As<graph::Gather>()) {
    const NodeId place = node.operands[1];
    const auto axis = static_cast<int64_t>(program.Part(false).size());
    return gather->axis == axis && gather->batch == axis && shape == program.KeptShape() &&
           program.graph.node(node.operands[0]).type.shape == program.space &&
           shape != program.space && program.IsShared(place) && program.known[place] == 0;
  }
  const auto* map = node.As<graph::Map>();
  if (!map) return false;
  // Beside elements, a shared value broadcasts only if it has its reduced axes as extents of 1.
  return std::ranges::all_of(node.operands, [&](NodeId operand) {
    const bool broadcasts = graph::BroadcastsTo(program.graph.node(operand).type.shape, shape);
    return broadcasts && (!program.IsShared(id) || is_shared(operand));
  });
}

}  // namespace

Shape ReductionProgram::Part(bool of_reduced) const {
  Shape part;
  for (size_t axis = 0; axis < space.size(); ++axis) {
    if (reduced[axis] == of_reduced) part.push_back(space[axis]);
  }
  return part;
}

int ReductionProgram::InnerAxis() const {
  for (size_t axis = space.size(); axis-- > 0;) {
    if (!space[axis].one()) return static_cast<int>(axis);
  }
  return -1;
}

std::vector<NodeId> ReductionProgram::ReductionsOf(int pass) const {
  std::vector<NodeId> found;
  for (size_t id = 0; id < passes.size(); ++id) {
    if (passes[id] == pass && !beside.contains(static_cast<NodeId>(id)))
      found.push_back(static_cast<NodeId>(id));
  }
  return found;
}

std::vector<NodeId> ReductionProgram::BesideOf(NodeId id) const {
  std::vector<NodeId> found;
  for (const auto& [one, of] : beside) {
    if (of == id) found.push_back(one);
  }
  return found;
}

Shape ReductionProgram::KeptShape() const {
  Shape shape = space;
  for (size_t axis = 0; axis < space.size(); ++axis) {
    if (reduced[axis]) shape[axis] = graph::Extent(1);
  }
  return shape;
}

bool ReductionProgram::IsShared(NodeId id) const {
  const Node& node = graph.node(id);
  if (passes[id] >= 0) return true;
  if (node.type.shape == space) return false;
  if (node.type.shape == KeptShape() || graph::ElementCount(node.type.shape).one()) return true;
  // Without the reduced axes, only its operands distinguish it from a value for each index of a
  // row.
  return node.type.shape == Part(false) && !node.operands.empty() &&
         std::ranges::all_of(node.operands, [this](NodeId operand) { return IsShared(operand); });
}

bool ReductionProgram::IsStreamed(NodeId id) const {
  return graph.node(id).As<graph::Input>() && graph.node(id).type.shape == space;
}

std::vector<NodeId> ReductionProgram::StreamedFor(const std::vector<NodeId>& wanted) const {
  const std::vector<bool> needed = graph::NeededFor(graph, wanted,
                                                    [this](NodeId id) { return IsShared(id); });
  std::vector<NodeId> found = graph.inputs();
  std::erase_if(found, [&](NodeId id) { return !needed[id] || !IsStreamed(id); });
  return found;
}

std::vector<NodeId> ReductionProgram::WantedIn(int pass) const {
  std::vector<NodeId> wanted;
  for (NodeId id : ReductionsOf(pass)) wanted.push_back(graph.node(id).operands[0]);
  for (const graph::Output& output : element_outputs) {
    if (pass == pass_count) wanted.push_back(output.node);
  }
  return wanted;
}

Coordinates ReductionProgram::ElementAt(int64_t lanes) const {
  Coordinates at;
  for (size_t axis = 0; axis < space.size(); ++axis) {
    const bool one = space[axis].one();
    at.push_back({.text = one ? "0" : (reduced[axis] ? "r" : "k") + std::to_string(axis),
                  .multiple = one ? 0 : 1});
    if (static_cast<int>(axis) != InnerAxis() || lanes == 1) continue;
    at.back().lanes = graph::Coordinate::Lanes::kNext;
    at.back().multiple = lanes;
  }
  return at;
}

Coordinates ReductionProgram::SharedAt(NodeId id, int64_t lanes) const {
  const size_t rank = graph.node(id).type.shape.size();
  const Coordinates element = ElementAt(lanes);
  if (graph::ElementCount(graph.node(id).type.shape).one())
    return Coordinates(rank, {.text = "0", .multiple = 0});
  Coordinates at;
  for (size_t axis = 0; axis < space.size(); ++axis) {
    if (!reduced[axis])
      at.push_back(element[axis]);
    else if (rank == space.size())
      at.push_back({.text = "0", .multiple = 0});
  }
  return at;
}

std::string ReductionProgram::ValueName(NodeId id) const {
  const std::string& name = graph.node(id).name;
  return (name.empty() ? "v" + std::to_string(id) : name) + "_";
}

std::optional<ReductionProgram> MakeColumnsProgram(const graph::ValidGraph& graph, bool online) {
  auto program = MakeProgram(
      graph,
      [&](ReductionProgram& made) {
        FindSpreads(made);
        if (online) FindExponentials(made);
      },
      !online);
  return program && !IsPooling(*program) ? std::move(program) : std::nullopt;
}

std::optional<ReductionProgram> MakeRowsProgram(const graph::ValidGraph& graph, bool online) {
  auto program = MakeProgram(graph, [&](ReductionProgram& made) {
    if (online) FindExponentials(made);
  });
  if (!program || !std::ranges::is_sorted(program->reduced)) return std::nullopt;
  if (graph::ElementCount(program->Part(true)).factor() >= INT32_MAX / 64) return std::nullopt;
  const std::vector<bool> computed = ComputedNodes(*program);
  for (size_t id = 0; id < program->passes.size(); ++id) {
    if (computed[id] && !IsOfRows(*program, static_cast<NodeId>(id))) return std::nullopt;
  }
  return program;
}

}  // namespace atunner
