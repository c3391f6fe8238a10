// Rewrites: passes from graph to graph that keep the meaning. Each is total: a valid graph stays
// valid. A pass is one file, named like its function.
//
// | pass | before | after |
// |---|---|---|
// | Simplify | y = transpose(transpose(x)) * (2 * 3) | y = x * 6 |
// | FuseMaps | t = x + b, y = exp(t) | y = exp(x + b) |
// | MergeAxes | y[2, 3, C] = exp(x[2, 3, C]) | y[6 * C] = exp(x[6 * C]) |
// | WithReducedAxesKept | m[R] = reduce_max(x), n[R, 1] = reshape(m) | m[R, 1] = reduce_max(x) |
// | WithCanonicalMatmuls | contract "kbm,bkn->nbm" | transposes, and contract "bmk,bkn->bmn" |
// | WithoutVectorProducts | contract "mk,k->m" | y = reduce_sum(a * b, axes=[1]) |
// | WithoutArgReductions | reduce_argmax(x) | the maximum, then the first index that holds it |
// | WithoutSingleElementScatters | scatter of one update per row | select(index(-1) == i, u, x) |
// | WithConstantIndexTables | scatter_sum at constant indices | gather by a table, reduce_sum |
// | WithSplitSorts | sort of 8 rows of 10^6 elements | sorts of parts, then of their first |
// | WithTransposesInProducts | t = transpose(b), contract(a, t) | contract(a, b) |
// | WithMapsBeforeTransposes | y = exp(transpose(convolution)) | y = transpose(exp(convolution)) |
//
// The last two have headers of their own.
//
// Where they are used: every task goes through FuseMaps. The partition of a graph into kernels
// first applies WithoutSingleElementScatters, WithConstantIndexTables, WithSplitSorts,
// WithTransposesInProducts and WithCanonicalMatmuls, fuses, applies WithMapsBeforeTransposes, and
// fuses again. Families of reductions apply WithReducedAxesKept and
// MergeAxes, so that a row is always the last axis.
#pragma once

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// The node with this operation, if there is exactly one.
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
/// True for a map of one operand whose value does not depend on indices or extents.
bool IsUnaryMap(const Node& node);

/// Removes nodes that no output needs (inputs stay), merges equal nodes, folds constants, removes
/// layout operations that cancel, and writes scalar constants and tables of up to 16 elements into
/// expressions. Every element of every output stays the same in exact evaluation.
ValidGraph Simplify(const ValidGraph& graph);

/// Puts maps into the maps that use them if that computes nothing twice: a producer with one user
/// of the same shape, or one that only casts. Intermediate values are then not rounded to their
/// types; exact evaluation stays the same. `through_roundings`: also maps that make a value
/// narrower. Without it they stay nodes, because that is where a value takes least memory.
/// Expressions stay within kDeepestExpression.
ValidGraph FuseMaps(const ValidGraph& graph, bool through_roundings = true);

/// Replaces argmax and argmin of inputs by two reductions: the extreme, then the first index that
/// holds it, or holds NaN.
ValidGraph WithoutArgReductions(const ValidGraph& graph);

/// Replaces scatters with one update per row of the last axis by maps.
ValidGraph WithoutSingleElementScatters(const ValidGraph& graph);

/// Replaces scatter-adds whose indices are known when the kernel is written (the gradient of
/// interpolation) by gathers through constant index tables. Other small maps without operands
/// become tables too. Limits: 4096 elements of a table, 16 updates of one element.
ValidGraph WithConstantIndexTables(const ValidGraph& graph);

/// Makes every sort one along the last axis. Sorts that want the first `count` of few long rows are
/// split: each row is cut into parts, the first `count` of each part are found, and those are
/// sorted.
ValidGraph WithSplitSorts(const ValidGraph& graph);
/// True if WithSplitSorts would split a sort.
bool HasLongSorts(const ValidGraph& graph);

/// Replaces contractions in which one operand has no axis of its own (matrix times vector) by a map
/// and a sum: no element is used twice, so that memory is the limit and tensor cores do not help.
ValidGraph WithoutVectorProducts(const ValidGraph& graph);

/// Makes every contraction a batch of matrix products: operands and results with axes in another
/// order are transposed. Contractions without rows, columns or depth become maps and sums.
ValidGraph WithCanonicalMatmuls(const ValidGraph& graph);

/// Values of rows keep the reduced axes as extents of 1, so that they broadcast: if the first
/// reduction takes [R, C] to [R], all values of shape [R] that depend on it or meet it become [R,
/// 1]. Inputs of that shape too; their elements keep their order. The graph is returned unchanged
/// if the first reduction is not over the last axes, or if a row value is used in another way.
ValidGraph WithReducedAxesKept(const ValidGraph& graph);

/// Merges neighbouring axes that no node distinguishes. Inputs and outputs get fewer axes too;
/// their elements keep their order.
ValidGraph MergeAxes(const ValidGraph& graph);

}  // namespace atunner::graph
