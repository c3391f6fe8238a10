// Values that a lane got by a shuffle from a lane which did not take part, or from unwritten shared
// memory by a load whose value is only copied. They are undefined.
// Programs compute with such values and drop them: in a reduction over part of a warp the upper
// lanes add what nobody gave them, and only the result of the first lane is used. So the values are
// followed through the registers, and the shuffle is reported if one decides a branch or an address
// or is stored.
#pragma once

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// The lanes `absent` of a shuffle by `mask` take values of `sources` that do not take part.
void NoteAbsentSources(BlockState& x, const Op& op, uint32_t absent, const int* sources);
/// A lane loads an element from unwritten shared memory. True if the value may be dropped later,
/// and is followed; else the read is reported at once.
bool FollowUnwritten(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t element);
/// Moves the marks of undefined values along with a shuffle by `mask`.
void MoveShuffled(BlockState& x, const Op& op, uint32_t mask, uint32_t absent, const int* sources);
/// Before an operation runs: reports what needs a value, and marks its results. `mask`: lanes of
/// its group; `active`: lanes that execute it.
void FollowShuffled(BlockState& x, const Op& op, uint32_t mask, uint32_t active);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
