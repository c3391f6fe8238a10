// Common parts of bulk copies with and without tensor maps. Operands: src[0] and src[1] with their
// offsets in Op::imm and Op::target, and src[3] the mbarrier. Bit i of Op::variant: the i-th of
// these three addresses has 32 bits.
#pragma once

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/pending.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/mbarrier.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

inline uint64_t BulkAddress(const BlockState& x, const Op& op, int operand, int lane) {
  const uint32_t* slot = x.Source(op.src[static_cast<size_t>(operand)]);
  const uint64_t offset = operand == 0
                              ? op.imm
                              : static_cast<uint64_t>(int64_t{static_cast<int32_t>(op.target)});
  const bool narrow = ((op.variant >> operand) & 1) != 0;
  return narrow ? uint64_t{slot[lane] + static_cast<uint32_t>(offset)}
                : Lane<uint64_t>::Get(slot, lane) + offset;
}
inline uint64_t BulkBarrier(const BlockState& x, const Op& op, int lane) {
  const uint32_t* slot = x.Source(op.src[3]);
  return ((op.variant & 4) ? slot[lane] : Lane<uint64_t>::Get(slot, lane)) & ~kWindowMask;
}

/// Calls deliver(shared address, mbarrier) for the destination, or for the same places in every
/// block that a multicast mask names.
template <class F>
void ForDestinations(const BlockState& x, const Op& op, int lane, const uint32_t* multicast,
                     F&& deliver) {
  const uint64_t to = BulkAddress(x, op, 0, lane) & ~kWindowMask;
  const uint64_t barrier = BulkBarrier(x, op, lane);
  if (multicast == nullptr) return deliver(to, barrier);
  constexpr uint64_t kOffset = (uint64_t{1} << kRankShift) - 1;
  for (uint32_t m = multicast[lane] & 0xffffu; m != 0 && !x.stop; m &= m - 1) {
    const uint64_t rank = static_cast<uint64_t>(std::countr_zero(m)) + 1;
    deliver((to & kOffset) | rank << kRankShift, (barrier & kOffset) | rank << kRankShift);
  }
}

/// Global memory that an asynchronous copy reads for one lane: unwritten bytes and races. It counts
/// as read when the copy is issued.
void NoteGlobalCopy(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes);

/// Combines one element: `to` op= `from`.
using Reduction = void (*)(std::byte* to, const std::byte* from, bool global);
constexpr std::string_view kReductions[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
/// The reduction with this name ("add") for a type; nullptr if there is none.
Reduction FindReduction(std::string_view operation, ptx::Type type);

/// st.async and red.async: a thread's own values into shared memory of the cluster, counted by an
/// mbarrier there.
Handler RemoteStoreHandler(const Form& form, Op& op);
/// atom and red of several elements at neighbouring addresses; the list holds results, if any, and
/// operands.
Handler VectorAtomicHandler(const Form& form, Op& op);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
