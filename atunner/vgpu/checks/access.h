// How every access to memory is resolved, checked and counted.
#pragma once

#include <string>

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

std::string Hex(uint64_t v);

inline uint64_t AddressOf(const BlockState& x, const Op& op, int lane) {
  if (op.src[0] == INT32_MIN) return op.imm;
  const uint32_t* a = x.Source(op.src[0]);
  // The register may lie below zero, and only its sum with the offset in shared memory.
  return op.narrow_address ? uint64_t{a[lane] + static_cast<uint32_t>(op.imm)}
                           : Lane<uint64_t>::Get(a, lane) + op.imm;
}

/// The space of a generic address, which loses its window.
inline Space Resolve(Space space, uint64_t& address) {
  if (space != Space::kGeneric) return space;
  switch (address & kWindowMask) {
    case kSharedWindow:
      address &= ~kWindowMask;
      return Space::kShared;
    case kLocalWindow:
      address &= ~kWindowMask;
      return Space::kLocal;
    case kParamWindow:
      address &= ~kWindowMask;
      return Space::kParam;
    default:
      return Space::kGlobal;
  }
}

bool CheckAligned(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t bytes);
/// The allocation around an access joins BlockState::ranges; nullptr after reporting that there is
/// none.
std::byte* FindGlobal(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                      const char* verb);
/// Forgets the remembered allocations when one was freed meanwhile.
inline void ForgetFreed(BlockState& x) {
  const uint32_t now = x.launch->memory->generation();
  if (now == x.allocations.generation) return;
  x.allocations.ranges = {};
  x.allocations.generation = now;
}
/// Host pointer of a global access, or nullptr after reporting.
inline std::byte* GlobalPointer(BlockState& x, const Op& op, int lane, uint64_t address,
                                uint64_t bytes, const char* verb) {
  ForgetFreed(x);
  for (const Range& range : x.allocations.ranges) {
    if (range.Contains(address, address + bytes) && address + bytes >= address)
      return reinterpret_cast<std::byte*>(address);
  }
  return FindGlobal(x, op, lane, address, bytes, verb);
}
/// The block whose shared memory an address means: the cluster's block of the rank in its upper
/// bits, which it loses. nullptr after reporting.
BlockState* SharedOwner(BlockState& x, const Op& op, int lane, uint64_t& address);
/// Whether a shared address lies in another block of the cluster.
inline bool IsRemote(const BlockState& x, uint64_t address) {
  const uint64_t rank = (address & ~kWindowMask) >> kRankShift;
  return rank != 0 && rank != x.cluster.rank + 1;
}
/// Host pointer of an access to shared, local or parameter memory, or nullptr after reporting.
std::byte* WindowPointer(BlockState& x, const Op& op, int lane, Space space, uint64_t address,
                         uint64_t bytes, const char* verb);

/// Checks and marks of the shared-memory shadow. `address` may name another block of the cluster:
/// then only initialisation is looked at.
void ShadowRead(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes);
void ShadowWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                 bool same_value, bool atomic);
/// Notes a read of a word of this block: of several readers in one warp the latest stands for all;
/// of several warps nobody can.
inline void NoteReader(BlockState& x, uint64_t word, uint16_t thread, uint32_t line) {
  SharedShadow& s = x.shadow.words[word];
  const bool others = s.read_epoch == x.shadow.epoch &&
                      (s.reader >= kSeveralThreads || s.reader / kLanes != x.warp->index);
  s.reader = others ? uint16_t{kSeveralThreads} : thread;
  s.read_epoch = x.shadow.epoch;
  s.read_sync = x.warp->sync_epoch;
  s.read_line = line;
  const bool quiet = s.initialised == 0xf && s.in_flight == 0 && s.writer != kBulkAccessor &&
                     s.write_epoch != x.shadow.epoch;
  if (others && quiet) x.shadow.only_read_in[word] = x.shadow.epoch;
}
/// A word of shared memory gets a value: whatever undefined register was stored there is gone.
inline void Fill(BlockState& owner, uint64_t word) {
  if (!owner.shadow.undefined_bytes.empty())
    std::memset(owner.shadow.undefined_bytes.data() + 4 * word, 0, 4);
}
/// Whether what a word of this block holds may still change, or be unknown, for the current thread:
/// it was written with no synchronisation between.
bool WriteUnordered(const BlockState& x, const SharedShadow& s, uint16_t thread);
/// Whether anything was written to the word of a shared address.
bool Initialised(BlockState& x, uint64_t address);

// Global memory: global_access.cpp.
/// Reads of global memory by the lanes of `mask`, all within `range`: unwritten bytes and races.
void CheckGlobalRead(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
                     uint32_t bytes, const Range& range, Layout layout);
/// Likewise of all lanes, side by side from `first` upwards, where nothing is wrong; false: look
/// closer.
bool ReadDenseQuietly(BlockState& x, const Op& op, uint64_t first, uint32_t bytes,
                      const Range& range);
/// One lane's write. `value`: what it stores, which is stored here then, so that nobody comes
/// between; `atomic`: races are not looked for.
void CheckGlobalWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t bytes,
                      const Range& range, const std::byte* value, bool atomic);
/// A store by lanes that lie side by side, which is made here. False: look at each lane, nothing
/// was done for good.
bool StoreDense(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
                uint32_t bytes, const Range& range, Layout layout);
/// Likewise of single words that lie anywhere and that nobody else touched.
bool StoreApart(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
                uint32_t bytes, const Range& range);
/// A single access of any size by one lane, of instructions that address global memory themselves.
void NoteGlobalRead(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes);
void NoteGlobalWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                     const std::byte* value = nullptr, bool atomic = false);
/// `at` lies in BlockState::local.
void CheckLocalRead(BlockState& x, const Op& op, int lane, const std::byte* at, uint32_t bytes);
void MarkLocal(BlockState& x, const std::byte* at, uint64_t bytes, bool defined = true);
/// The remembered range around an address that GlobalPointer found.
const Range* RangeOf(const BlockState& x, uint64_t address);
/// A fence for the whole device: what the block did so far can be seen by those that look from now
/// on.
void DeviceFence(BlockState& x);
/// A thread has looked at what others publish: an atomic, a volatile load.
inline void Acquire(BlockState& x) {
  if (x.checks.global_races) x.global.acquired = x.launch->clock->Now();
}
/// All blocks of the gang have met.
void OrderPeers(CoScheduledBlocks& gang);

void CountGlobal(BlockState& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes,
                 bool store);
/// Likewise of all lanes side by side, from `first` upwards.
void CountDense(BlockState& x, uint64_t first, uint32_t bytes, bool store);
/// Those that cp.async reads, whose bytes may not stay in L1.
void CountCopy(BlockState& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes,
               bool past_l1);
/// A bulk copy's global side.
void CountBulk(BlockState& x, uint64_t address, uint64_t bytes, bool store);
void CountShared(BlockState& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes);
inline void CountWavefronts(BlockState& x, uint32_t wavefronts) {
  ++x.counting.total.shared.requests;
  x.counting.total.shared.wavefronts += wavefronts;
  x.timing.touch = {Touch::Level::kShared, wavefronts};
}

/// Synchronisation that the race check cannot follow word by word: what happened before is ordered
/// before what follows.
void OrderAll(BlockState& x);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
