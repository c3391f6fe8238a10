#include "atunner/graph/match/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "atunner/graph/match/product.h"

namespace atunner::graph {
namespace {

/// Scores of masked keys are at most this: minus infinity, or the large number that some write for
/// it.
bool IsNever(double score) { return score <= -1e30; }

/// A query and a key for which the graph's expressions are evaluated.
struct Sample {
  double score = 0, top = 0, total = 1, mixed = 0, mask = 0;
  int64_t query = 0, key = 0;
};

bool IsNear(double a, double b) {
  return std::isfinite(a) && std::fabs(a - b) <= 1e-6 * (std::fabs(a) + std::fabs(b));
}

/// The nodes of a graph that attention consists of.
struct Nodes {
  NodeId scores = -1, top = -1, total = -1, mixed = -1, mask = -1;
  int64_t queries = 0, keys = 0;
};

/// Evaluates the element of a node for one query and one key. NaN if it depends on elements of
/// other queries or keys.
class Samples {
 public:
  Samples(const ValidGraph& graph, const Nodes& nodes) : graph_(graph), nodes_(nodes) {}

  double At(NodeId id, const Sample& sample) const {
    const Cell cell = CellAt(id, sample);
    return IsFloat(graph_.node(id).type.dtype) ? cell.real : static_cast<double>(cell.whole);
  }

 private:
  Cell CellAt(NodeId id, const Sample& sample) const {
    const Node& node = graph_.node(id);
    if (id == nodes_.scores) return Real(sample.score);
    if (id == nodes_.top) return Real(sample.top);
    if (id == nodes_.total) return Real(sample.total);
    if (id == nodes_.mixed) return Real(sample.mixed);
    if (id == nodes_.mask) return Real(sample.mask);
    if (node.As<Reshape>()) return CellAt(node.operands[0], sample);
    const auto* constant = node.As<Constant>();
    if (constant && constant->values.size() == 1) return constant->values[0];
    return node.As<Map>() ? OfMap(node, sample) : Real(NAN);
  }

  Cell OfMap(const Node& map, const Sample& sample) const {
    const ScalarExpression& body = map.As<Map>()->body;
    std::vector<Cell> values;
    for (const ScalarNode& node : body.nodes()) {
      const auto argument = [&](int i) {
        return values[static_cast<size_t>(node.args[static_cast<size_t>(i)])];
      };
      const auto type = [&](int i) {
        return body.nodes()[static_cast<size_t>(node.args[static_cast<size_t>(i)])].dtype;
      };
      if (node.op == ScalarOp::kParameter) {
        values.push_back(CellAt(map.operands[static_cast<size_t>(node.number)], sample));
      } else if (node.op == ScalarOp::kLiteral) {
        values.push_back(node.literal);
      } else if (node.op == ScalarOp::kIndex || node.op == ScalarOp::kExtent) {
        values.push_back(IndexOf(map.type.shape, node, sample));
      } else if (node.op == ScalarOp::kSelect) {
        values.push_back(argument(argument(0).whole != 0 ? 1 : 2));
      } else if (node.op == ScalarOp::kCast) {
        const bool from = IsFloat(type(0)), to = IsFloat(node.dtype);
        values.push_back(from == to ? argument(0)
                         : to       ? Real(static_cast<double>(argument(0).whole))
                                    : Whole(static_cast<int64_t>(argument(0).real)));
      } else if (IsTableOp(node.op)) {
        values.push_back(Compute(node.op, IsFloat(type(0)), argument(0),
                                 node.args[1] >= 0 ? argument(1) : argument(0)));
      } else {
        values.push_back(Real(NAN));
      }
    }
    return values.back();
  }

  /// The index along an axis of a map whose last axes are queries and keys; a value that matches
  /// nothing for other maps.
  Cell IndexOf(const Shape& shape, const ScalarNode& node, const Sample& sample) const {
    const bool square = shape.size() >= 2 && shape.back() == Extent(nodes_.keys) &&
                        shape[shape.size() - 2] == Extent(nodes_.queries);
    if (!square || node.number < -2) return Whole(int64_t{1} << 40);
    const bool of_keys = node.number == -1;
    if (node.op == ScalarOp::kExtent) return Whole(of_keys ? nodes_.keys : nodes_.queries);
    return Whole(of_keys ? sample.key : sample.query);
  }

  const ValidGraph& graph_;
  const Nodes& nodes_;
};

NodeId Unshaped(const ValidGraph& graph, NodeId id) {
  while (graph.node(id).As<Reshape>()) id = graph.node(id).operands[0];
  return id;
}

/// True for a product of [batch…, m, k] with [batch…, n, k] (`transposed`) or [batch…, k, n]. The
/// second operand may lack the last axis of the batch: query heads that share a key head.
bool IsProduct(const Node& node, bool transposed) {
  const auto [a, b, c] = ParsedEquation(node.As<Contract>()->equation);
  if (a.size() < 3 || a.size() != c.size() || b.size() > a.size() || b.size() + 1 < a.size())
    return false;
  const std::string batch = a.substr(0, a.size() - 2), m(1, a[a.size() - 2]), k(1, a.back());
  const std::string n(1, c.back());
  return c == batch + m + n && b == batch.substr(0, b.size() - 2) + (transposed ? n + k : k + n);
}

/// nullopt if the graph has other nodes, or another number of these.
std::optional<Nodes> NodesOf(const ValidGraph& graph) {
  Nodes nodes;
  for (size_t at = 0; at < graph.nodes().size(); ++at) {
    const Node& node = graph.nodes()[at];
    const auto id = static_cast<NodeId>(at);
    const auto take = [&](NodeId& place) { return place < 0 && (place = id, true); };
    if (node.As<Contract>()) {
      if (!take(nodes.scores) && !take(nodes.mixed)) return std::nullopt;
    } else if (const auto* reduce = node.As<Reduce>()) {
      const size_t rank = graph.node(node.operands[0]).type.rank();
      if (reduce->axes != std::vector{static_cast<int64_t>(rank) - 1}) return std::nullopt;
      const bool taken = reduce->op == Combine::kMax   ? take(nodes.top)
                         : reduce->op == Combine::kSum ? take(nodes.total)
                                                       : false;
      if (!taken) return std::nullopt;
    } else if (!node.As<Map>() && !node.As<Reshape>() && !node.As<Input>() &&
               !node.As<Constant>()) {
      return std::nullopt;
    }
  }
  const bool all = nodes.mixed >= 0 && nodes.top >= 0 && nodes.total >= 0;
  return all && IsProduct(graph.node(nodes.scores), true) &&
                 IsProduct(graph.node(nodes.mixed), false)
             ? std::optional(nodes)
             : std::nullopt;
}

/// Reads scale, mask and causality from the map whose maximum is the largest score. False if it is
/// anything else than a scaled and masked score.
bool ReadScores(const Samples& samples, const Nodes& nodes, NodeId scaled, AttentionForm& form) {
  const int64_t ahead = nodes.keys - nodes.queries, last = nodes.keys - 1;
  form.scale = samples.At(scaled, {.score = 1});
  form.causal = IsNever(samples.At(scaled, {.score = 1, .key = last})) && ahead >= 0 && last > 0;
  if (!std::isfinite(form.scale) || form.scale == 0) return false;
  for (const int64_t query :
       {int64_t{0}, nodes.queries / 3, nodes.queries / 2, nodes.queries - 1}) {
    for (const int64_t key : {int64_t{0}, query + ahead, query + ahead + 1, nodes.keys / 2, last}) {
      if (key < 0 || key > last) continue;
      for (const double score : {-3.0, 0.0, 1.0, 70.0}) {
        const double mask = nodes.mask < 0 ? 0 : 0.25 * score - 1;
        const bool seen = !form.causal || key <= query + ahead;
        const double got = samples.At(scaled,
                                      {.score = score, .mask = mask, .query = query, .key = key});
        if (seen ? !IsNear(got, score * form.scale + mask) : !IsNever(got)) return false;
      }
    }
  }
  return true;
}

/// True if a map computes weights exp(score - top), divided by their total or not.
bool AreWeights(const Samples& samples, NodeId weights, double scale, bool normed) {
  for (const double score : {-2.0, 0.0, 1.0, 5.0}) {
    for (const double total : {1.0, 3.0}) {
      const Sample sample{.score = score, .top = 5 * std::fabs(scale), .total = total};
      const double want = std::exp(score * scale - sample.top) / (normed ? total : 1);
      if (!IsNear(samples.At(weights, sample), want)) return false;
    }
  }
  return true;
}

bool IsMixed(const Samples& samples, NodeId result, bool divided) {
  for (const double total : {1.0, 4.0}) {
    if (!IsNear(samples.At(result, {.total = total, .mixed = 3}), divided ? 3 / total : 3))
      return false;
  }
  return true;
}

/// True for an input of shape [queries, keys].
NodeId MaskOf(const ValidGraph& graph, const Nodes& nodes, const std::vector<const Node*>& others) {
  for (NodeId id : graph.inputs()) {
    if (std::ranges::find(others, &graph.node(id)) != others.end()) continue;
    const Shape& shape = graph.node(id).type.shape;
    const bool square = shape.size() >= 2 && shape.back() == Extent(nodes.keys) &&
                        shape[shape.size() - 2] == Extent(nodes.queries);
    if (square && ElementCount(shape) == Extent(nodes.keys) * Extent(nodes.queries)) return id;
  }
  return -1;
}

}  // namespace

std::optional<AttentionForm> AttentionOf(const ValidGraph& graph) {
  if (graph.outputs().size() != 1) return std::nullopt;
  auto nodes = NodesOf(graph);
  if (!nodes) return std::nullopt;
  const Node &scores = graph.node(nodes->scores), &mixed = graph.node(nodes->mixed);
  const Factor q = FactorOf(graph, scores.operands[0]), k = FactorOf(graph, scores.operands[1]);
  const Factor v = FactorOf(graph, mixed.operands[1]);
  const Output& output = graph.outputs()[0];
  const DType dtype = graph.node(output.node).type.dtype;
  for (const Factor& factor : {q, k, v}) {
    if (!factor.input || factor.triangle != 0 || factor.input->type.dtype != dtype)
      return std::nullopt;
  }
  const Shape &of_q = graph.node(scores.operands[0]).type.shape,
              &of_k = graph.node(scores.operands[1]).type.shape,
              &of_v = graph.node(mixed.operands[1]).type.shape;
  if (of_q.back() != of_v.back() || of_k.size() != of_v.size()) return std::nullopt;
  const size_t rank = of_q.size();
  const Extent shared = of_v.size() < rank ? of_q[rank - 3] : Extent(1);
  if (!shared.constant()) return std::nullopt;
  if (!of_q[rank - 2].constant() || !of_v[rank - 2].constant() || !of_q.back().constant())
    return std::nullopt;
  nodes->queries = of_q[rank - 2].factor(), nodes->keys = of_v[rank - 2].factor();
  nodes->mask = MaskOf(graph, *nodes, {q.input, k.input, v.input});
  if (graph.inputs().size() != (nodes->mask < 0 ? 3 : 4)) return std::nullopt;
  AttentionForm form{.q = q.input->name, .k = k.input->name, .v = v.input->name, .y = output.name};
  if (nodes->mask >= 0) form.mask = graph.node(nodes->mask).name;
  form.queries = nodes->queries, form.keys = nodes->keys, form.dim = of_q.back().factor();
  size_t batched = rank > 3 ? 1 : 0;
  for (size_t axis = 0; axis + 2 < rank; ++axis)
    batched = of_q[axis].constant() ? batched : axis + 1;
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    if (axis < batched)
      form.batch = form.batch * of_q[axis];
    else
      form.heads *= of_q[axis].factor();
  }
  form.sharing = shared.factor();
  const Samples samples(graph, *nodes);
  if (!ReadScores(samples, *nodes, graph.node(nodes->top).operands[0], form)) return std::nullopt;
  // Without `sparse`, a masked key's weight of zero times NaN is NaN, which the kernels do not
  // compute.
  if (form.causal && !mixed.As<Contract>()->sparse) return std::nullopt;
  const NodeId weights = Unshaped(graph, mixed.operands[0]);
  const bool normed = AreWeights(samples, weights, form.scale, true);
  if (!normed && !AreWeights(samples, weights, form.scale, false)) return std::nullopt;
  // The kernels make no zeros of a query that sees no key.
  const Sample unseen{.score = -INFINITY, .top = -INFINITY, .total = 0};
  if (normed && samples.At(weights, unseen) == 0) return std::nullopt;
  if (!AreWeights(samples, graph.node(nodes->total).operands[0], form.scale, false))
    return std::nullopt;
  return IsMixed(samples, output.node, !normed) ? std::optional(form) : std::nullopt;
}

}  // namespace atunner::graph
