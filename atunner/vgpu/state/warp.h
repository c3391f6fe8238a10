// A warp of the virtual GPU: its registers, and the groups into which its lanes have diverged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "atunner/vgpu/memory/happens_before.h"
#include "atunner/vgpu/state/decoded.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Lanes of a warp that execute together: they have the same program counter and call depth.
struct Group {
  uint32_t pc = 0;
  uint32_t mask = 0;
  /// The barrier at which the lanes wait: a barrier of the block (0 to 15) or one of the constants
  /// below. -1 = the lanes do not wait.
  int barrier = -1;
  const Op* reduction = nullptr;  ///< the bar.red that receives its result when the barrier opens
  uint32_t depth = 0;             ///< how many calls deep
};
constexpr int kWarpBarrier = 64;  ///< bar.warp.sync: waits for lanes of the same warp
constexpr int kCollective = 65;   ///< before a shuffle, vote or mma: waits for the lanes it names
constexpr int kClusterBarrier = 66;  ///< waits for the threads of all blocks of the cluster
constexpr int kGroupBarrier = 67;  ///< before a wgmma: waits for the other warps of the warp group
constexpr uint32_t kGroupWarps = 4;  ///< warps of a warp group
constexpr uint32_t kWholeGroup =
    1;  ///< Op::target of an operation that a whole warp group executes

/// One entry of a lane's call stack.
struct ReturnPoint {
  uint32_t call_op = 0;
  uint32_t frame = 0;           ///< where the caller's frame begins
  uint32_t claimed = 0;         ///< Warp::claimed before the call
  std::vector<uint32_t> saved;  ///< registers of the outer activation of a recursive function
};

/// A wgmma whose registers are in use until wgmma.wait_group, or a move of such a register.
struct PendingProduct {
  uint32_t group = 0;  ///< how many wgmma.commit_group were executed before it
  const Op* op = nullptr;
};
/// The latest fence of a warp. A strong write that follows it releases what was before it.
struct WarpFence {
  uint32_t epoch = 0;  ///< of the block when it was executed; 0 = there was none
  uint32_t sync = 0;
  uint32_t lanes = 0;  ///< that executed it
};
/// How pending wgmma use a register slot.
enum Held : uint8_t { kFree, kRead, kWritten };

struct Warp {
  std::vector<SlotLanes> file;    ///< the constants, in reverse, and the registers
  uint32_t* registers = nullptr;  ///< slot 0 in `file`
  uint32_t* Slot(int32_t slot) const { return registers + static_cast<ptrdiff_t>(slot) * kLanes; }
  std::vector<Group> groups;
  uint32_t alive = 0;  ///< mask of the lanes that have not exited
  uint32_t index = 0;
  uint32_t sync_epoch = 0;  ///< grows with every warp-level synchronisation
  uint32_t members = 0;     ///< mask of the bar.warp.sync at which lanes wait
  /// Accesses of threads that happen before the warp's next ones.
  HappensBefore before;
  WarpFence fence;
  /// A volatile flag was seen: volatile accesses to shared memory in epochs before this one are
  /// over
  uint32_t polled_epoch = 0;
  /// Asynchronous operations: events of block epochs before this one happen before the warp's
  uint32_t seen_epoch = 0;
  uint32_t proxy_epoch = 0;     ///< the same, as of the last fence.proxy.async
  uint32_t product_groups = 0;  ///< wgmma.commit_group so far
  std::vector<PendingProduct> products;
  std::vector<Held> held;  ///< per slot
  uint32_t carry = 0;      ///< condition code register: one bit per lane
  uint32_t turn = 0;       ///< counts which group is next when several groups spin
  uint32_t spins = 0;      ///< backward branches since another group ran
  uint32_t retries = 0;    ///< failed attempts of the current mbarrier.try_wait
  uint64_t clocks = 0;     ///< since its block began, if the kernel has Kernel::clocks
  /// Digest of the registers when the warp last repeated a loop that only polls memory.
  uint64_t waited_with = 0;
  /// Per slot: mask of the lanes whose register is undefined. Kept for
  /// Kernel::maybe_undefined_slots.
  std::vector<uint32_t> undefined;
  /// Per slot: mask of the lanes whose undefined value was loaded from shared memory.
  std::vector<uint32_t> carried;
  std::array<std::vector<ReturnPoint>, kLanes> stack;
  std::array<uint32_t, kLanes> claimed{};  ///< bytes that alloca took from the end of local memory
};

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
