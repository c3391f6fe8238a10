// Roundings to 16-bit types that must happen although a kernel keeps the value in float32.
#pragma once

#include <string>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::fusion {

enum class Roundings {
  /// Values on which a comparison, an extreme's index, an order or an integer depends: equal
  /// 16-bit values must stay equal. Ties that vanish have given infinite gradients elsewhere.
  kWhereExact,
  kAll,  ///< every computed value of a 16-bit type, as PyTorch does it operator by operator
};

struct RoundedGraph {
  graph::ValidGraph graph;
  /// The values that are rounded, with the reason: "v12: a comparison depends on it"
  std::vector<std::string> kept;
};

/// The same graph, in which values of 16-bit floats that maps, reductions and contractions compute
/// are rounded by an operation of their own (`round`), which no pass removes.
RoundedGraph WithRoundings(const graph::ValidGraph& graph, Roundings roundings);

}  // namespace atunner::fusion
