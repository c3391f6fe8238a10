#include "atunner/search/space/decision_diagram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace atunner {

Result<DecisionDiagram> DecisionDiagram::FromLevels(std::vector<Level> levels) {
  std::vector<uint64_t> below;  // tuples per node of the level underneath
  for (size_t l = levels.size(); l-- > 0;) {
    Level& level = levels[l];
    const bool last = l + 1 == levels.size();
    const size_t nodes = level.first_edge.size() - 1;
    std::vector<uint64_t> counts(nodes, 0);
    size_t kept = 0;
    for (size_t node = 0; node < nodes; ++node) {
      const uint32_t end = level.first_edge[node + 1];
      const uint32_t start = level.first_edge[node];
      level.first_edge[node] = static_cast<uint32_t>(kept);
      for (uint32_t e = start; e < end; ++e) {
        Edge edge = level.edges[e];
        const uint64_t tuples = last ? 1 : below[edge.child];
        if (tuples == 0) continue;
        if (last) edge.child = 0;
        edge.before = counts[node];
        counts[node] += tuples;
        if (counts[node] >> 63)
          return Invalid("the space has 2^63 valid configurations or more", "",
                         "remove parameters or values, or add constraints");
        level.edges[kept++] = edge;
      }
    }
    level.first_edge[nodes] = static_cast<uint32_t>(kept);
    level.edges.resize(kept);
    level.edges.shrink_to_fit();
    below = std::move(counts);
  }
  DecisionDiagram diagram;
  diagram.size_ = levels.empty() ? 1 : below[0];
  diagram.levels_ = std::move(levels);
  return diagram;
}

DecisionDiagram DecisionDiagram::FromRows(std::span<const uint16_t> rows, size_t width) {
  const size_t count = width == 0 ? 0 : rows.size() / width;
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  const auto row = [&](size_t i) { return rows.subspan(order[i] * width, width); };
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return std::ranges::lexicographical_compare(rows.subspan(a * width, width),
                                                rows.subspan(b * width, width));
  });
  std::vector<Level> levels(width);
  for (size_t l = 0; l < width; ++l) levels[l].parameter = l;
  if (width > 0) levels[0].first_edge = {0};
  for (size_t i = 0; i < count; ++i) {
    size_t shared = 0;  // leading positions in common with the row before
    if (i > 0)
      shared = static_cast<size_t>(std::ranges::mismatch(row(i), row(i - 1)).in1 - row(i).begin());
    for (size_t l = shared; l < width; ++l) {
      if (l > shared || i == 0) {
        if (l > 0) levels[l].first_edge.push_back(static_cast<uint32_t>(levels[l].edges.size()));
      }
      const auto child = l + 1 < width ? static_cast<uint32_t>(levels[l + 1].first_edge.size()) : 0;
      levels[l].edges.push_back({0, child, row(i)[l]});
    }
  }
  for (Level& level : levels) level.first_edge.push_back(static_cast<uint32_t>(level.edges.size()));
  // Fewer than 2^63 rows fit any memory.
  DecisionDiagram diagram = FromLevels(std::move(levels)).value();
  if (count == 0) diagram.size_ = 0;
  return diagram;
}

size_t DecisionDiagram::edge_count() const {
  size_t edges = 0;
  for (const Level& level : levels_) edges += level.edges.size();
  return edges;
}

void DecisionDiagram::PositionsAt(uint64_t index, std::span<uint16_t> positions) const {
  uint32_t node = 0;
  for (const Level& level : levels_) {
    const auto edges = level.EdgesOf(node);
    const auto at = std::ranges::upper_bound(edges, index, {}, &Edge::before) - 1;
    positions[level.parameter] = at->value;
    index -= at->before;
    node = at->child;
  }
}

const DecisionDiagram::Edge* DecisionDiagram::Find(const Level& level, uint32_t node,
                                                   uint16_t value) {
  const auto edges = level.EdgesOf(node);
  const auto at = std::ranges::lower_bound(edges, value, {}, &Edge::value);
  return at != edges.end() && at->value == value ? &*at : nullptr;
}

int64_t DecisionDiagram::Descend(size_t level, uint32_t node,
                                 std::span<const uint16_t> positions) const {
  uint64_t index = 0;
  for (; level < levels_.size(); ++level) {
    const Edge* edge = Find(levels_[level], node, positions[levels_[level].parameter]);
    if (edge == nullptr) return -1;
    index += edge->before;
    node = edge->child;
  }
  return static_cast<int64_t>(index);
}

uint64_t DecisionDiagram::IndexOf(std::span<const uint16_t> positions) const {
  if (size_ == 0) return 0;
  const int64_t index = Descend(0, 0, positions);
  return index < 0 ? size_ : static_cast<uint64_t>(index);
}

uint64_t DecisionDiagram::Near(std::span<const double> wanted) const {
  uint64_t index = 0;
  uint32_t node = 0;
  for (const Level& level : levels_) {
    const auto edges = level.EdgesOf(node);
    const double value = wanted[level.parameter];
    const auto nearest = std::ranges::min_element(
        edges, {}, [&](const Edge& e) { return std::fabs(e.value - value); });
    index += nearest->before;
    node = nearest->child;
  }
  return index;
}

}  // namespace atunner
