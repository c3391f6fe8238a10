// Loop depth of each basic block of a control flow graph.
#pragma once

#include <cstdint>
#include <vector>

namespace atunner::vgpu {

/// Loops around each node of a graph that begins at node 0: edges back to a node that every way
/// there has passed, and what lies between. Code that stands behind a program and jumps back into
/// it, as rare cases do, is none. Nodes that nothing leads to are beginnings as well.
std::vector<uint32_t> LoopDepths(const std::vector<std::vector<uint32_t>>& successors);

}  // namespace atunner::vgpu
