// Moves that pack registers, or take them apart.
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

void MoveUnpack(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  const int total = op.width * op.list_size;
  for (int i = 0; i < op.list_size; ++i) {
    const int32_t slot = x.kernel->lists[op.list + static_cast<size_t>(i)];
    if (slot == INT32_MIN) continue;
    uint32_t* d = x.Slot(slot);
    ForLanes(mask, [&](int l) {
      const uint64_t whole = total == 8 ? Lane<uint64_t>::Get(a, l) : a[l];
      const uint64_t part = whole >> (8 * op.width * i);
      d[l] = op.width == 4 ? static_cast<uint32_t>(part)
                           : static_cast<uint32_t>(part & ((1u << (8 * op.width)) - 1));
    });
  }
}

void MovePack(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const bool wide = op.width * op.list_size == 8;
  ForLanes(mask, [&](int l) {
    uint64_t whole = 0;
    for (int i = 0; i < op.list_size; ++i) {
      const uint64_t part = x.Source(x.kernel->lists[op.list + static_cast<size_t>(i)])[l];
      whole |= (op.width == 4 ? part : part & ((1u << (8 * op.width)) - 1)) << (8 * op.width * i);
    }
    if (wide)
      Lane<uint64_t>::Set(d, l, whole);
    else
      d[l] = static_cast<uint32_t>(whole);
  });
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
