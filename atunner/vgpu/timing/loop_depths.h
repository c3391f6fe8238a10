// Loop depth of each basic block of a control flow graph.
#pragma once

#include <cstdint>
#include <vector>

namespace atunner::vgpu {

/// Loop depth of each node of a graph that begins at node 0. A loop is an edge back to a node that
/// dominates the edge's source, and the nodes between. Code behind a program that jumps back into
/// it, as for rare cases, is not a loop. Nodes without predecessors are entries as well.
std::vector<uint32_t> LoopDepths(const std::vector<std::vector<uint32_t>>& successors);

}  // namespace atunner::vgpu
