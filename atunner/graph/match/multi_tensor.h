// Graphs that do the same to many tensors ("multi-tensor apply"): an optimizer step over all
// parameters, gradients that are clipped together.
//
// Example, clip_grad_norm of two tensors g0 and g1 of different sizes:
//
//     s0 = reduce_sum(g0 * g0), s1 = reduce_sum(g1 * g1)       one reduction per tensor
//     factor = min(1, limit / sqrt(s0 + s1))                   one scalar for all
//     y0 = g0 * factor, y1 = g1 * factor                       outputs that depend on it
//
// g0 and g1 are the two members of one group. `factor` is a broadcast scalar, y0 and y1 are
// dependent outputs: they need a second pass over the tensors.
#pragma once

#include <optional>
#include <vector>

#include "atunner/graph/graph.h"

namespace atunner::graph {

/// All that is computed element by element from inputs of one shape and from scalars.
struct GroupMember {
  int64_t elements = 0;         ///< of each tensor
  std::vector<NodeId> inputs;   ///< in the order in which the results need them
  std::vector<Output> outputs;  ///< outputs that depend on no reduction
  std::vector<NodeId> sums;     ///< reductions of all elements of a tensor to one
  /// Outputs that depend on a reduction, of this member or of another
  std::vector<Output> dependent_outputs;
};

/// Members that differ in their tensors and sizes alone: the i-th input of each is used in the same
/// way.
using TensorGroup = std::vector<GroupMember>;

struct MultiTensorGroups {
  std::vector<TensorGroup> groups;
  /// Scalars that depend on reductions and that element-wise maps take
  std::vector<NodeId> broadcast_scalars;
  std::vector<Output> scalar_outputs;  ///< outputs of one element
};

/// nullopt if the graph computes anything else, or if every group has a single member.
std::optional<MultiTensorGroups> FindMultiTensorGroups(const ValidGraph& graph);

}  // namespace atunner::graph
