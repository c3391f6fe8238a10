// Runs of fused multiply-adds, executed without an indirect call for each.
//
// An operation is normally executed by a call of its handler, op.run(x, op, active), which
// processes 32 lanes. The multiply-adds of an fma.rn.f32 are only four AVX2 instructions, so that
// the indirect call is a large part of the cost. In unrolled matrix multiplications nearly all
// operations are such multiply-adds:
//
//     fma.rn.f32 %f1, %f65, %f73, %f1;     op.run == kPlainFma   +
//     fma.rn.f32 %f2, %f65, %f74, %f2;     op.run == kPlainFma   | RunFmas: one loop
//     ...                                                        |
//     fma.rn.f32 %f64, %f72, %f80, %f64;   op.run == kPlainFma   +
//     ld.shared.f32 %f65, [%r3+4];         another handler: back to the loop over operations
//
// RunBasicBlock (warps/exec.cpp) compares op.run with the handler of plain multiply-adds before it
// makes the indirect call. If it is that handler, RunFmas executes the operation and all directly
// following ones of the kind: the compare with the next operation's handler is a predictable
// branch, and the arithmetic is inlined.
//
// The fast path applies if
//   * all 32 lanes of the warp are active and the operation has no guard, so that no lane is
//   masked;
//   * no observer needs to see operations one by one: pending wgmma, counts per line (`watch`).
//     The whole run is added to the timeline afterwards (NoteRun).
//
// Counting needs nothing here: executions of a basic block are counted once for all its operations.
// Results are the same as those of the handler, bit by bit, because both use std::fma.
#pragma once

#include <cmath>

#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// A result of float32 arithmetic, which delivers but one NaN: the payloads of operands are lost.
inline float Canonical(float v) { return v != v ? std::bit_cast<float>(0x7fffffffu) : v; }

/// Handler of fma.rn.f32 that neither flushes nor saturates.
extern const Handler kPlainFma;

/// Executes the operations from `pc` on for all lanes of a warp, as long as they are plain
/// multiply-adds without a guard. The first one must be. Returns the index of the first operation
/// that is not, at most `end`.
inline uint32_t RunFmas(const Warp& warp, const Op* ops, uint32_t pc, uint32_t end, Handler fma) {
  do {
    const Op& op = ops[pc];
    const uint32_t* a = warp.Slot(op.src[0]);
    const uint32_t* b = warp.Slot(op.src[1]);
    const uint32_t* c = warp.Slot(op.src[2]);
    Assign<float>(warp.Slot(op.dst), ~0u, [&](int l) {
      return Canonical(
          std::fma(Lane<float>::Get(a, l), Lane<float>::Get(b, l), Lane<float>::Get(c, l)));
    });
    ++pc;
  } while (pc < end && ops[pc].run == fma && ops[pc].guard < 0);
  return pc;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
