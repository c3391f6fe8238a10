// Which graphs are attention, however they are written: told from what their expressions make of
// numbers.
#pragma once

#include <optional>
#include <string>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// y = softmax(q · kᵀ · scale [+ mask]) · v for each head of each batch: q is [batch, heads,
/// queries, dim], k and v are [batch, heads, keys, dim], whatever their axes before the last two;
/// of those, open ones are of the batch.
struct AttentionForm {
  std::string q, k, v, y;  ///< tensors of the graph
  std::string mask;        ///< [queries, keys], added; empty = none
  Extent batch;
  int64_t heads = 1, queries = 1, keys = 1, dim = 1;
  double scale = 1;
  /// Query i sees keys up to i + keys - queries, and of the others not even NaN: the second
  /// contraction is sparse.
  bool causal = false;
};

/// Of a graph whose contractions are products of matrices (WithMatrixProducts), in one type, and
/// which is nothing else.
std::optional<AttentionForm> AttentionOf(const ValidGraph& graph);

}  // namespace atunner::graph
