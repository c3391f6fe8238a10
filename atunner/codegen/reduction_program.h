// A graph of maps and reductions over rows, in the order in which a kernel computes it: passes over the row's elements,
// each of which ends in reductions that the next one needs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner {

struct ReductionProgram {
  enum class Kind : uint8_t {
    kElement,  ///< one value per element of the space (an input may repeat along some axes)
    kRow,      ///< one value per row
  };
  struct Step {
    Kind kind = Kind::kElement;
    int pass = 0;  ///< the first pass in which the value can be computed; of a reduction, the one that computes it
  };

  graph::ValidGraph graph;
  graph::Shape space;       ///< rows' axes, then those that are reduced
  size_t row_axes = 0;      ///< how many come first
  int64_t columns = 1;      ///< elements of a row
  std::vector<Step> steps;  ///< by node
  int passes = 0;           ///< before the one that writes elements
  /// By the node of a sum of exp(x - m), where m is the largest x of the row: that m. One pass computes both.
  std::map<graph::NodeId, graph::NodeId> exponentials;
  std::set<graph::NodeId> equals;  ///< of those sums: where x is m, infinite too, the distance is 0

  graph::Shape RowSpace() const { return {space.begin(), space.begin() + static_cast<int64_t>(row_axes)}; }
  graph::Shape ColumnSpace() const { return {space.begin() + static_cast<int64_t>(row_axes), space.end()}; }
  /// What of a shape, aligned at the last axis of the space, stands for rows, and what for the elements of a row.
  graph::Shape RowPart(const graph::Shape& shape) const;
  graph::Shape ColumnPart(const graph::Shape& shape) const;
  /// What a pass over the elements is for: operands of its reductions, and in the last one the outputs.
  std::vector<graph::NodeId> WantedIn(int pass) const;
  /// The last one over elements.
  int LastPass() const { return WantedIn(passes).empty() ? passes - 1 : passes; }
  /// The nodes of kind kElement that `wanted` are computed from, in order, themselves included.
  std::vector<graph::NodeId> ElementsFor(const std::vector<graph::NodeId>& wanted) const;
};

/// nullopt where the graph is not made of maps, of reductions over the same last axes of known extent, and of elements
/// of rows at places that inputs tell. `online`: sums of exponentials are found (else they are sums like others).
std::optional<ReductionProgram> MakeReductionProgram(const graph::ValidGraph& graph, bool online = false);

}  // namespace atunner
