// Multiply-adds one behind the other, the bulk of most products, without a call for each.
#pragma once

#include <cmath>

#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Handler of fma.rn.f32 that neither flushes nor saturates.
extern const Handler kPlainFma;

/// Executes the operations from `pc` on for all lanes of a warp, as long as they are plain
/// multiply-adds without a guard; the first must be. Returns the place of the first that is none,
/// `end` at most.
inline uint32_t RunFmas(const Warp& warp, const Op* ops, uint32_t pc, uint32_t end, Handler fma) {
  do {
    const Op& op = ops[pc];
    const uint32_t* a = warp.Slot(op.src[0]);
    const uint32_t* b = warp.Slot(op.src[1]);
    const uint32_t* c = warp.Slot(op.src[2]);
    Assign<float>(warp.Slot(op.dst), ~0u, [&](int l) {
      return std::fma(Lane<float>::Get(a, l), Lane<float>::Get(b, l), Lane<float>::Get(c, l));
    });
    ++pc;
  } while (pc < end && ops[pc].run == fma && ops[pc].guard < 0);
  return pc;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
