// Conversions as they are defined, one lane after the other; convert.cpp has loops for those that
// dominate kernels.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp, kAway };

/// Packed into Op::imm by ConvertHandler.
struct ConvertOptions {
  ptx::Type to = ptx::Type::kNone, from = ptx::Type::kNone;
  Rounding rounding = Rounding::kNearest;
  bool ftz = false, sat = false, finite = false, relu = false, integer_round = false;
  /// 64-bit register of a narrower integer type
  bool wide_source = false, wide_destination = false;
};
uint64_t Pack(const ConvertOptions& options);

bool IsFloatType(ptx::Type type);

// Handlers of operations with packed options.
void ConvertGeneric(BlockState& x, const Op& op, uint32_t mask);
/// cvt.rn.satfinite.e4m3x2.{f32 a, b | f16x2}: the first source or the upper half goes to the upper
/// byte.
void NarrowToFp8(BlockState& x, const Op& op, uint32_t mask);
void WidenFromFp8(BlockState& x, const Op& op, uint32_t mask);
/// cvt to a pair of 16-bit floats with any rounding; a goes to the upper half.
void PackPairGeneric(BlockState& x, const Op& op, uint32_t mask);
/// cvt.pack.sat: two integers clamped into the lower part of the result; c moves up by their width.
/// `imm`: the width, `sign_extend`: they are signed.
void PackIntegers(BlockState& x, const Op& op, uint32_t mask);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
