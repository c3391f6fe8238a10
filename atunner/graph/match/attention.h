// Recognises attention, however the softmax and the mask are written: expressions are compared
// after all maps have been put into each other.
#pragma once

#include <optional>
#include <string>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// y = softmax(q · kᵀ · scale [+ mask]) · v for each head of each batch. q and y are [batch, heads,
/// queries, dim], k and v are [batch, heads / sharing, keys, dim]. The axes before the last two may
/// be any number; those with symbols count as the batch.
struct AttentionForm {
  std::string q, k, v, y;  ///< tensors of the graph
  std::string mask;        ///< [queries, keys], added to the scores; empty = no mask
  Extent batch;
  int64_t heads = 1, queries = 1, keys = 1, dim = 1;
  int64_t sharing = 1;  ///< query heads that have one key head
  double scale = 1;
  /// Query i sees keys up to i + keys - queries. A NaN in another key does not reach it, because
  /// the second contraction is sparse.
  bool causal = false;
};

/// `graph` must have gone through WithCanonicalMatmuls. nullopt if it computes anything besides
/// attention, or if its tensors have more than one type.
std::optional<AttentionForm> AttentionOf(const ValidGraph& graph);

}  // namespace atunner::graph
