#include "atunner/graph/match/mask_density.h"

#include <algorithm>

namespace atunner::graph {
namespace {

constexpr int64_t kLattice = 256;

/// The indices that a node of an expression depends on.
struct Leans {
  bool place = false;
  bool unknown = false;  ///< it depends on values, or on operators that are not evaluated here
};

std::vector<Leans> LeansOf(const ScalarExpression& body) {
  std::vector<Leans> leans;
  for (const ScalarNode& node : body.nodes()) {
    const bool known = IsTableOp(node.op) || node.op == ScalarOp::kLiteral ||
                       node.op == ScalarOp::kIndex || node.op == ScalarOp::kExtent;
    Leans mine{.place = node.op == ScalarOp::kIndex, .unknown = !known};
    for (int i = 0; i < ArityOf(node.op); ++i) {
      mine.place |= leans[node.args[i]].place;
      mine.unknown |= leans[node.args[i]].unknown;
    }
    leans.push_back(mine);
  }
  return leans;
}

/// Evaluates a condition on indices at the points of a lattice of up to kLattice per axis.
class Condition {
 public:
  Condition(const ScalarExpression& body, int root, const std::vector<int64_t>& extents)
      : nodes_(body.nodes()),
        root_(root),
        extents_(extents),
        values_(body.nodes().size()),
        at_(extents.size()) {
    Mark(root);
  }
  /// A lower bound of the fraction of indices for which the condition has the value `holds`. One
  /// step of the lattice is subtracted, because the condition may change anywhere between two
  /// points.
  double Share(bool holds) {
    Walk(0);
    const double share = static_cast<double>(held_) / static_cast<double>(seen_);
    return std::max(0.0, (holds ? share : 1 - share) - slack_);
  }

 private:
  size_t AxisOf(const ScalarNode& node) const { return extents_.size() + node.number; }

  void Mark(int id) {
    const ScalarNode& node = nodes_[id];
    needed_.resize(nodes_.size());
    moves_.resize(extents_.size());
    needed_[id] = true;
    if (node.op == ScalarOp::kIndex) moves_[AxisOf(node)] = true;
    for (int i = 0; i < ArityOf(node.op); ++i) Mark(node.args[i]);
  }

  void Walk(size_t axis) {
    if (axis == extents_.size()) {
      ++seen_;
      held_ += Holds();
      return;
    }
    const int64_t extent = extents_[axis];
    const int64_t places = moves_[axis] ? std::min(extent, kLattice) : 1;
    if (places < extent && moves_[axis]) slack_ = 1.0 / kLattice;
    for (int64_t i = 0; i < places; ++i) {
      at_[axis] = (2 * i + 1) * extent / (2 * places);
      Walk(axis + 1);
    }
  }

  bool Holds() {
    for (int id = 0; id <= root_; ++id) {
      if (!needed_[id]) continue;
      const ScalarNode& node = nodes_[id];
      if (node.op == ScalarOp::kLiteral) values_[id] = node.literal;
      if (node.op == ScalarOp::kIndex) values_[id].whole = at_[AxisOf(node)];
      if (node.op == ScalarOp::kExtent) values_[id].whole = extents_[AxisOf(node)];
      if (!IsTableOp(node.op)) continue;
      const Cell b = ArityOf(node.op) > 1 ? values_[node.args[1]] : Cell{};
      values_[id] = Compute(node.op, IsFloat(nodes_[node.args[0]].dtype), values_[node.args[0]], b);
    }
    return values_[root_].whole != 0;
  }

  const std::vector<ScalarNode>& nodes_;
  int root_;
  const std::vector<int64_t>& extents_;
  std::vector<Cell> values_;
  std::vector<int64_t> at_;
  std::vector<bool> needed_, moves_;
  int64_t seen_ = 0, held_ = 0;
  double slack_ = 0;
};

double MaskDensity(const Map& map) {
  if (!map.body.Uses(ScalarOp::kSelect) || !map.body.Uses(ScalarOp::kIndex)) return 1;
  std::vector<int64_t> extents;
  for (const Extent& extent : map.shape) extents.push_back(extent.factor());
  const std::vector<Leans> leans = LeansOf(map.body);
  double kept = 1;
  for (const ScalarNode& node : map.body.nodes()) {
    if (node.op != ScalarOp::kSelect || !leans[node.args[0]].place) continue;
    if (leans[node.args[0]].unknown) return 0;
    // The literal is what masked elements become; the other side is kept.
    const bool kept_if = map.body.nodes()[node.args[2]].op == ScalarOp::kLiteral;
    kept = std::min(kept, Condition(map.body, node.args[0], extents).Share(kept_if));
  }
  return kept;
}

}  // namespace

double MaskDensity(const ValidGraph& graph) {
  const auto sparse = [](const Node& node) {
    const auto* contract = node.As<Contract>();
    return contract && contract->sparse;
  };
  if (std::ranges::none_of(graph.nodes(), sparse))
    return 1;  // only sparse contractions use the density
  double kept = 1;
  for (const Node& node : graph.nodes()) {
    if (const auto* map = node.As<Map>()) kept = std::min(kept, MaskDensity(*map));
  }
  return kept;
}

}  // namespace atunner::graph
