// A set of value tuples as a multi-valued decision diagram: one level per parameter, and each path
// from the root is one tuple. space_builder.h explains it with an example. Numbering, drawing and
// looking up cost one step per level, whatever the number of tuples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "atunner/base/result.h"

namespace atunner {

class DecisionDiagram {
 public:
  struct Edge {
    uint64_t before = 0;  ///< tuples that come before this edge's within its node
    uint32_t child = 0;   ///< node of the next level
    uint16_t value = 0;
  };
  struct Level {
    size_t parameter = 0;
    std::vector<uint32_t> first_edge;  ///< per node, and one behind the last
    std::vector<Edge> edges;           ///< per node in ascending order of value
    std::span<const Edge> EdgesOf(uint32_t node) const {
      return std::span(edges).subspan(first_edge[node], first_edge[node + 1] - first_edge[node]);
    }
  };

  DecisionDiagram() = default;
  /// Takes the levels from the root down, removes edges to nodes without valid tuples, and fills in
  /// `before`. The children of the last level are ignored. kInvalidInput for 2^63 tuples or more.
  static Result<DecisionDiagram> FromLevels(std::vector<Level> levels);
  /// Exactly these tuples: rows of `width` positions, one after another. Repeated rows count once.
  static DecisionDiagram FromRows(std::span<const uint16_t> rows, size_t width);

  uint64_t size() const { return size_; }
  size_t width() const { return levels_.size(); }
  const std::vector<Level>& levels() const { return levels_; }
  size_t edge_count() const;
  void PositionsAt(uint64_t index, std::span<uint16_t> positions) const;
  /// size() when the tuple is not in the set.
  uint64_t IndexOf(std::span<const uint16_t> positions) const;
  /// A tuple of the set near `wanted`, level by level the nearest value that leads on; size() must
  /// not be 0.
  uint64_t Near(std::span<const double> wanted) const;
  /// Calls visit(parameter, value, index) for every tuple that differs from `positions` (which is
  /// in the set) in one parameter.
  template <class Visit>
  void VisitHamming(std::span<const uint16_t> positions, const Visit& visit) const;

 private:
  static const Edge* Find(const Level& level, uint32_t node, uint16_t value);
  /// Index within `node`'s tuples of the rest of `positions`; -1 when it is not there.
  int64_t Descend(size_t level, uint32_t node, std::span<const uint16_t> positions) const;

  std::vector<Level> levels_;
  uint64_t size_ = 1;
};

template <class Visit>
void DecisionDiagram::VisitHamming(std::span<const uint16_t> positions, const Visit& visit) const {
  uint64_t prefix = 0;
  uint32_t node = 0;
  for (size_t l = 0; l < levels_.size(); ++l) {
    const Level& level = levels_[l];
    const uint16_t here = positions[level.parameter];
    const Edge* own = nullptr;
    for (const Edge& edge : level.EdgesOf(node)) {
      if (edge.value == here) {
        own = &edge;
        continue;
      }
      const int64_t rest = Descend(l + 1, edge.child, positions);
      if (rest >= 0)
        visit(level.parameter, edge.value, prefix + edge.before + static_cast<uint64_t>(rest));
    }
    prefix += own->before;
    node = own->child;
  }
}

}  // namespace atunner
