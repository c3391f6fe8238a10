// Rewrites from graph to graph that keep the meaning. Each is total: a graph that is valid stays
// valid.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The one node of this kind, if there is one and no more.
template <class Operation>
std::optional<NodeId> OnlyNode(const ValidGraph& graph) {
  std::optional<NodeId> found;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    if (!graph.nodes()[id].template As<Operation>()) continue;
    if (found) return std::nullopt;
    found = static_cast<NodeId>(id);
  }
  return found;
}
/// A map of one operand whose value does not depend on the place.
bool IsUnaryMap(const Node& node);

/// Removes what no output needs (inputs stay), makes equal nodes one, computes what is known,
/// undoes moves of data that cancel, and puts scalar constants and short tables into expressions.
/// Every element of every output stays the same in exact evaluation.
ValidGraph Simplify(const ValidGraph& graph);

/// Puts maps into the maps that use them, where that repeats no work worth naming: a producer with
/// one user of the same shape, or one that only converts. Less is rounded to inner types than
/// before; exact evaluation stays the same. `through_roundings`: maps that make a value narrower
/// too; else they stay, since it is then that a value is best kept.
ValidGraph FuseMaps(const ValidGraph& graph, bool through_roundings = true);

/// The place of an input's largest (or smallest) element as two reductions of the usual kind: the
/// extreme, then the first place that holds it, or holds NaN.
ValidGraph WithoutArgReductions(const ValidGraph& graph);

/// Scatters with one update for each row of the last axis as maps: an element is updated where its
/// place is the one.
ValidGraph WithoutSingleElementScatters(const ValidGraph& graph);

/// Sums of updates at places that no input says (gradients of interpolation) as what each place
/// takes from where, by tables, which other small maps of no operands become too.
ValidGraph WithConstantIndexTables(const ValidGraph& graph);

/// Sorts of the last axis alone, and the first of long rows, where there are few of these, as the
/// first of what comes first in their parts.
ValidGraph WithSplitSorts(const ValidGraph& graph);
bool HasLongSorts(const ValidGraph& graph);

/// Products of a tensor with one that has no axis of its own (a matrix with a vector) as maps and
/// sums: there is nothing to multiply twice, so that reading is what takes time.
ValidGraph WithoutVectorProducts(const ValidGraph& graph);

/// Contractions as products of matrices side by side: operands and results whose axes lie otherwise
/// are transposed; what has no matrix on a side, or no depth, becomes maps and sums.
ValidGraph WithCanonicalMatmuls(const ValidGraph& graph);

/// Values for each row of what the first reduction takes, if it is one over last axes, with these
/// as extents of 1, so that they broadcast; of inputs too (whose elements lie in the same order).
/// The same graph where rows are used otherwise as well.
ValidGraph WithReducedAxesKept(const ValidGraph& graph);

/// As few axes as may be: neighbouring ones that no node tells apart become one, of inputs and
/// outputs too (whose elements lie in the same order).
ValidGraph MergeAxes(const ValidGraph& graph);

}  // namespace atunner::graph
