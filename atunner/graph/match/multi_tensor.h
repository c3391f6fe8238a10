// Tensors that a graph treats alike, each for itself: the parameters of an optimizer, the gradients
// that are clipped together.
#pragma once

#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// What is computed element by element from inputs of one shape and from single elements that all
/// share.
struct Member {
  int64_t elements = 0;         ///< of each tensor
  std::vector<NodeId> inputs;   ///< in the order in which the results need them
  std::vector<Output> outputs;  ///< that need no sums
  std::vector<NodeId> sums;     ///< reductions of all elements to one
  std::vector<Output> later;    ///< outputs that need what sums, of any member, make
};

/// Members that differ in their tensors and sizes alone: what the first does to its i-th input, all
/// others do to theirs.
using Kind = std::vector<Member>;

struct AlikeMembers {
  std::vector<Kind> kinds;
  std::vector<NodeId> handed;  ///< single elements that sums make and maps of tensors take
  std::vector<Output> single;  ///< outputs of one element
};

/// nullopt where something else than such members is computed, or none is like another.
std::optional<AlikeMembers> FindAlike(const ValidGraph& graph);

}  // namespace atunner::graph
