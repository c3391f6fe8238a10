// How each access to memory is resolved to a host address, checked and counted.
#pragma once

#include <string>

#include "atunner/vgpu/state/block_state.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

std::string Hex(uint64_t v);

inline uint64_t AddressOf(const BlockState& x, const Op& op, int lane) {
  if (op.src[0] == INT32_MIN) return op.imm;
  const uint32_t* a = x.Source(op.src[0]);
  // The register may be negative; only its sum with the offset is an address of shared memory.
  return op.narrow_address ? uint64_t{a[lane] + static_cast<uint32_t>(op.imm)}
                           : Lane<uint64_t>::Get(a, lane) + op.imm;
}

/// The state space of a generic address. Removes the window bits, which encode the space.
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
/// Finds the allocation around an access, and adds it to AllocationCache::ranges. nullptr after
/// reporting that there is none.
std::byte* FindGlobal(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                      const char* verb);
/// Clears the cached allocations if one was freed since.
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
/// The block whose shared memory an address means. The upper bits of the address hold its rank in
/// the cluster, and are removed. nullptr after reporting.
BlockState* SharedOwner(BlockState& x, const Op& op, int lane, uint64_t& address);
/// True if a shared address belongs to another block of the cluster.
inline bool IsRemote(const BlockState& x, uint64_t address) {
  const uint64_t rank = (address & ~kWindowMask) >> kRankShift;
  return rank != 0 && rank != x.cluster.rank + 1;
}
/// Host pointer of an access to shared, local or parameter memory, or nullptr after reporting.
std::byte* WindowPointer(BlockState& x, const Op& op, int lane, Space space, uint64_t address,
                         uint64_t bytes, const char* verb);

/// Checks an access to shared memory against the shadow, and updates the shadow. `address` may
/// belong to another block of the cluster.
void ShadowRead(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes);
void ShadowWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                 bool same_value, bool atomic);
/// Stores a read in the shadow of a word. If threads of one warp read it, the latest stands for all
/// of them; if threads of several warps did, the reader becomes kSeveralThreads.
inline void NoteReader(BlockState& x, uint64_t word, uint16_t thread, uint32_t line) {
  SharedShadow& s = x.shadow.words[word];
  const bool others = s.read_epoch == x.shadow.epoch &&
                      (s.reader >= kSeveralThreads || s.reader / kLanes != x.warp->index);
  s.reader = others ? uint16_t{kSeveralThreads} : thread;
  s.last_reader = thread;
  s.read_epoch = x.shadow.epoch;
  s.read_sync = x.warp->sync_epoch;
  s.read_line = line;
  const bool quiet = s.initialised == 0xf && s.in_flight == 0 && s.writer != kBulkAccessor &&
                     s.write_epoch < x.shadow.common_epoch;
  if (others && quiet) x.shadow.only_read_in[word] = x.shadow.epoch;
}
/// Notes that a word of shared memory gets a defined value.
inline void MarkWordDefined(RaceShadow& shadow, uint64_t word) {
  if (!shadow.undefined_bytes.empty()) std::memset(shadow.undefined_bytes.data() + 4 * word, 0, 4);
}
/// True if no synchronisation orders the latest ordinary write of a word before a thread of the
/// running warp.
bool WriteUnordered(const BlockState& x, const SharedShadow& s, uint16_t thread);
/// The same for its latest read and a write by the thread.
bool ReadUnordered(const BlockState& x, const SharedShadow& s, uint16_t thread);
/// True if any byte of the word at a shared address was written.
bool Initialised(BlockState& x, uint64_t address);

// Global memory: global_access.cpp.
/// Checks reads of global memory by the lanes of `mask`, all within `range`, for unwritten bytes
/// and races.
void CheckGlobalRead(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
                     uint32_t bytes, const Range& range, Layout layout);
/// Fast path of CheckGlobalRead for 32 lanes that read consecutive elements from `first` on. False
/// if a hazard is possible; then CheckGlobalRead must be called.
bool ReadDenseQuietly(BlockState& x, const Op& op, uint64_t first, uint32_t bytes,
                      const Range& range);
/// Checks one lane's write. If `value` is not nullptr it is stored here, under the lock of the
/// shadow. `atomic`: by an atomic, which does not race with other strong accesses.
void CheckGlobalWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t bytes,
                      const Range& range, const std::byte* value, bool atomic);
/// Checks and makes a store of consecutive elements. False if a hazard is possible: then nothing
/// was stored, and each lane must be checked.
bool StoreDense(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
                uint32_t bytes, const Range& range, Layout layout);
/// The same for words at any addresses that no other block accessed.
bool StoreApart(BlockState& x, const Op& op, uint32_t mask, const uint64_t* addresses,
                uint32_t bytes, const Range& range);
/// Checks an access of any size by one lane: for instructions that compute global addresses
/// themselves, such as bulk copies.
void NoteGlobalRead(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes);
void NoteGlobalWrite(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                     const std::byte* value = nullptr, bool atomic = false);
/// `at` points into LocalMemory::bytes.
void CheckLocalRead(BlockState& x, const Op& op, int lane, const std::byte* at, uint32_t bytes);
/// Marks bytes of local memory as written, or as undefined.
void MarkLocal(LocalMemory& local, const std::byte* at, uint64_t bytes, bool defined = true);
/// The cached allocation around an address that GlobalPointer found.
const Range* RangeOf(const AllocationCache& allocations, uint64_t address);
/// A barrier of a cluster, or a phase of an mbarrier: it orders the accesses of the blocks of a
/// cluster.
void OrderPeers(CoScheduledBlocks& peers);

/// Counts where the lanes of an atomic meet. `floats`: it adds floating-point numbers.
void CountAtomic(BlockState& x, const uint64_t* addresses, uint32_t mask, bool floats);
void CountGlobal(BlockState& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes,
                 bool store);
/// The same for 32 lanes that access consecutive elements from `first` on.
void CountDense(BlockState& x, uint64_t first, uint32_t bytes, bool store);
/// Counts reads by cp.async. `past_l1`: the data bypasses L1.
void CountCopy(BlockState& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes,
               bool past_l1);
/// Counts the global accesses of a bulk copy.
void CountBulk(BlockState& x, uint64_t address, uint64_t bytes, bool store);
void CountShared(BlockState& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes);
inline void CountWavefronts(BlockState& x, uint32_t wavefronts) {
  ++x.counting.total.shared.requests;
  x.counting.total.shared.wavefronts += wavefronts;
  x.timing.touch = {Touch::Level::kShared, wavefronts};
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
