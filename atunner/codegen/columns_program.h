// A graph of maps and reductions over the same axes, wherever these lie: passes over the elements, each of which ends
// in reductions that the next one needs.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner {

struct ColumnsProgram {
  graph::ValidGraph graph;
  graph::Shape space;         ///< of what is reduced
  std::vector<bool> reduced;  ///< by axis of the space
  std::vector<int> passes;    ///< by node: of a reduction, the pass that computes it; of others -1
  int pass_count = 0;
  /// By the node of a mean or sum of squared distances from a mean: that mean. One pass computes both.
  std::map<graph::NodeId, graph::NodeId> spreads;
  bool kept_inside = false;                    ///< are neighbouring elements kept (columns), or reduced?
  std::vector<graph::Output> element_outputs;  ///< of the space's shape
  std::vector<graph::Output> kept_outputs;     ///< one element for each of the kept space

  graph::Shape Part(bool of_reduced) const;
  /// The axis along which neighbours lie in memory; -1 where the space has one element.
  int InnerAxis() const;
  std::vector<graph::NodeId> ReductionsOf(int pass) const;
  /// The spreads that are computed beside a mean.
  std::vector<graph::NodeId> SpreadsOf(graph::NodeId mean) const;
  /// The kept space, with the reduced axes as extents of 1.
  graph::Shape KeptShape() const;
};

/// nullopt where reductions differ in their axes, or something else than a map comes between.
std::optional<ColumnsProgram> MakeColumnsProgram(const graph::ValidGraph& graph);

}  // namespace atunner
