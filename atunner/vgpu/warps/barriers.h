// Where lanes wait for others: of the warp, the block or the cluster.
#pragma once

#include "atunner/vgpu/warps/flow.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

Next Barrier(BlockState& x, const Op& op, Cursor& c, uint32_t active);
/// `variant` 0: arrive, 1: wait for the phase in which the thread arrived.
Next ClusterBarrier(BlockState& x, const Op& op, Cursor& c, uint32_t active);
Next WarpSync(BlockState& x, const Op& op, Cursor& c, uint32_t active);
/// .sync.aligned: all lanes of the warp, and for some operations of its warp group, execute it
/// together.
Next Aligned(BlockState& x, const Op& op, Cursor& c, uint32_t active);
/// Opens barriers that exited lanes of the current warp were the last missing ones of.
void CheckBarriers(BlockState& x);
/// All lanes that the masks of `lanes` name: tiles of a warp pass different ones.
inline uint32_t Named(const uint32_t* masks, uint32_t lanes) {
  uint32_t named = 0;
  ForLanes(lanes, [&](int l) { named |= masks[l]; });
  return named;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
