// Barriers: lanes wait for other lanes of the warp, the block or the cluster.
#pragma once

#include "atunner/vgpu/warps/flow.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

Next Barrier(BlockState& x, const Op& op, Cursor& c, uint32_t active);
/// `variant` 0: arrive, 1: wait for the phase in which the thread arrived.
Next ClusterBarrier(BlockState& x, const Op& op, Cursor& c, uint32_t active);
Next WarpSync(BlockState& x, const Op& op, Cursor& c, uint32_t active);
/// An operation with .sync.aligned, which all lanes of the warp, or of the warp group, execute
/// together.
Next Aligned(BlockState& x, const Op& op, Cursor& c, uint32_t active);
/// Opens barriers that waited only for lanes of the current warp that have exited.
void CheckBarriers(BlockState& x);
/// The union of the masks of `lanes`. Tiles of a warp pass different masks.
inline uint32_t Named(const uint32_t* masks, uint32_t lanes) {
  uint32_t named = 0;
  ForLanes(lanes, [&](int l) { named |= masks[l]; });
  return named;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
