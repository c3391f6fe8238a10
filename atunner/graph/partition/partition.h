// Partitions a graph that no single kernel computes into subgraphs, one kernel each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The cost of one kernel that computes a subgraph, in any unit; nullopt if no kernel computes it
/// for less than `limit`.
using SubgraphCost = std::function<std::optional<double>(const ValidGraph& part, double limit)>;

/// A subgraph for one kernel.
struct Part {
  ValidGraph graph;
  /// The nodes of the whole graph that it computes, in the order of computing. Values that are
  /// computed again in each subgraph that needs them are not among them.
  std::vector<NodeId> nodes;
};

/// How values between subgraphs are stored.
enum class KeptProducts : uint8_t {
  kWide,     ///< 16-bit results of contractions in float32, so that a cut rounds nothing
  kOwnType,  ///< in their own type, as frameworks do: half the bytes
};

/// The subgraphs in the order in which they run; a single one if that is cheapest. A value that a
/// later subgraph takes from an earlier one is an output of the one and an input of the other, with
/// the same name: the graph's own name if it is an output of the graph. Symbols stay symbols; costs
/// are compared at `sizes`. nullopt if some node is in no subgraph that has a cost.
std::optional<std::vector<Part>> Partition(const ValidGraph& graph, const Dims& sizes,
                                           const SubgraphCost& cost,
                                           KeptProducts products = KeptProducts::kWide);

/// True if the subgraph has at most one contraction, scan, sort or scatter (an anchor); with
/// `pairs`, also if it has two contractions that share an operand, and one output.
bool HasOneAnchor(const ValidGraph& part, bool pairs);

/// True if a reduction takes less than an eighth of the elements of the largest output, at `sizes`.
bool HasSmallReduction(const ValidGraph& part, const Dims& sizes);

/// The same graph under the name "part", with inputs a1, a2, …, outputs y1, y2, …, and the symbols
/// that it uses, so that equal subgraphs of any two graphs have equal texts.
ValidGraph WithCanonicalNames(const ValidGraph& part);

}  // namespace atunner::graph
