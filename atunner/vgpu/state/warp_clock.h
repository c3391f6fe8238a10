// When each warp of a block would reach each place if nothing else ran on its SM: results become
// ready after latencies, barriers wait for the last warp. Two runs side by side, with loads that
// miss L1 served by L2 and by DRAM.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "atunner/ptx/module.h"
#include "atunner/vgpu/timing/op_cost.h"
#include "atunner/vgpu/timing/port.h"

#ifndef ATUNNER_VGPU_ISA
#error "define ATUNNER_VGPU_ISA"
#endif

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

struct BlockState;
struct Kernel;
struct CoScheduledBlocks;
struct Launch;
struct Op;

inline constexpr size_t kQuarters = 4;  ///< of an SM, each with its scheduler and tensor core

/// What the warps of a block take in turns.
struct Ports {
  Port l2;       ///< the way of bulk copies into the SM
  Port cluster;  ///< the way to other blocks' shared memory
  Port shared;
  std::array<Port, kQuarters> tensor;  ///< wgmma
  std::array<Port, kQuarters> issue;
};

inline Moment Latest(const Moment& a, const Moment& b) {
  return {std::max(a[0], b[0]), std::max(a[1], b[1])};
}

/// What the timeline must know of one operation: registers that it reads and writes, in
/// Kernel::track_list.
struct Track {
  enum class Role : uint8_t {
    kPlain,
    kAsyncCopy,
    kAsyncCommit,
    kAsyncWait,
    kProduct,
    kProductWait
  };
  uint32_t first = 0;
  uint8_t reads = 0;
  uint8_t writes = 0;
  Role role = Role::kPlain;
  bool store = false;
  /// A branch over so little that the assembler gives that a predicate instead
  bool predicated = false;
  bool unordered = false;  ///< a load of what no store changes: .nc, constants
  /// Arithmetic on the way to a load's address, which moves ahead with the load
  bool leads = false;
  bool meets = false;       ///< mbarriers and bulk copies, by which warps wait for each other
  bool constant = false;    ///< its result is a parameter or an address that needs no register
  bool streams = false;     ///< a load that no cache keeps: evict-first
  int32_t base = -1;        ///< register of the first address
  uint16_t load_words = 0;  ///< registers that a load fills
  uint32_t products = 0;    ///< multiply-adds of 16 bits of a wgmma
  uint16_t live = 0;        ///< registers in use before the operation, in the order of the text
  OpCost cost;
};

/// How the access of the operation at hand met memory.
struct Touch {
  /// kL2: L1 lost it meanwhile
  enum class Level : uint8_t { kNone, kShared, kRemote, kL1, kL2, kMiss };
  Level level = Level::kNone;
  uint32_t wavefronts = 0;  ///< cycles that the load/store unit needs for it
  uint32_t copied = 0;      ///< bytes that an asynchronous copy brings from beyond L1
};
/// An operation that met memory, or that no lane ran.
struct Noted {
  uint32_t pc = 0;
  bool active = false;
  Touch touch;
};

/// An operation's Track in short, for the latencies of a launch.
struct Timing {
  double latency = 0;  ///< from the issue to the result, without what memory takes
  uint32_t first = 0;
  uint16_t live = 0;
  uint8_t reads = 0;
  uint8_t writes = 0;
  bool plain = false;  ///< if it meets no memory: waits for its operands and for nothing else
};
/// Cycles that operations keep their warp's issue slot and its share of the pipes busy.
struct Busy {
  double slots = 0, alu = 0, special = 0, tensor = 0;
};
/// What timelines need to know of all operations before a launch begins.
struct TimingTable {
  std::vector<Timing> timings;  ///< per operation; where the machine code is known, none
  std::vector<Busy> busy;       ///< of all operations before each, and one past the last
  std::vector<uint8_t> marks;   ///< per operation: it must be noted wherever it runs
};

/// A warp's clock. Within a stretch without branches the assembler moves instructions as early as
/// their operands allow; between stretches they stay in order.
struct WarpTime {
  Moment start{};   ///< of the stretch
  Moment issued{};  ///< the latest issue in it
  /// Cycles that the stretch keeps busy: the issue slot, and this warp's share of the narrow pipes.
  double slots = 0, alu = 0, special = 0, tensor = 0, memory = 0;
  double Busy() const { return std::max({slots, alu, special, tensor, memory}); }
  /// Loads do not move above stores that may write the same place; another offset from the same
  /// register is another.
  struct Stores {
    int32_t base = -1;  ///< address register of the last one
    Moment with_base{};
    Moment others{};
  };
  Stores shared_stores;
  Stores global_stores;
  Moment copies{};             ///< cp.async since the last commit
  std::vector<Moment> groups;  ///< committed ones, oldest first
  std::vector<Moment> ready;   ///< per register
  /// Places of the stretch, in the order of the text: how far the order in which instructions must
  /// issue has come.
  struct Place {
    Moment issued{};
    uint32_t load_words = 0;  ///< of all loads up to here
    uint32_t live = 0;
  };
  std::vector<Place> places;  ///< the first `placed` are of this stretch
  size_t placed = 0;
  size_t oldest = 0;  ///< of the places that a load may still move to
  void NotePlace(const Place& place) {
    if (placed == places.size()) places.resize(2 * placed + 64);
    places[placed++] = place;
  }
  // Where the machine code is known (in_order.h):
  struct Accesses {
    std::vector<Touch> touches;  ///< since the operation's machine code last issued
    size_t taken = 0;
  };
  std::array<Moment, 6> barriers{};  ///< scoreboards: when each is free
  std::vector<Accesses> accesses;    ///< per operation
  Moment products{};                 ///< all wgmma so far are done
  Moment earlier_products{};         ///< those before the newest group, which begins after a wait
  bool waited = true;                ///< for products, and none since
  uint32_t part = 0;                 ///< of the schedule, that waits to issue
  uint32_t pending = 0;              ///< executions of it
  uint32_t jumps = 0;                ///< taken branches since
};

/// When an access of the current warp that begins at `at` is done.
Moment DoneWith(BlockState& x, const Touch& touch, const Moment& at);
/// cp.async.wait_group: when all but the newest `newest` groups have landed. They are forgotten.
Moment LandedBy(WarpTime& time, uint64_t newest);

/// Registers of an instruction's operands, counted from `first`, appended to `list`.
Track TrackOf(const ptx::Instruction& instruction, uint32_t first, std::vector<int32_t>& list);

/// Fills Track::live. The assembler moves loads ahead as long as registers are left.
void MarkLive(Kernel& kernel, const std::vector<uint8_t>& words);

TimingTable TimingsOf(const Launch& launch);

/// An operation that changes the flow runs in the current warp, with `active` lanes or none.
void Advance(BlockState& x, const Op& op, uint32_t pc, bool active);
/// An operation that does not has run, and is marked, met memory or was run by no lane.
void Note(BlockState& x, uint32_t pc, bool active);
/// The operations from BlockState::timed_from up to `end` have run, but for what was noted of them
/// by all lanes.
void PassTime(BlockState& x, uint32_t end);
/// The stretch ends: what follows issues later, after `gap` cycles.
void EndStretch(BlockState& x, double gap = 0);
/// The block's barrier opens for these warps.
void Meet(BlockState& x, const std::vector<uint32_t>& waiting);
/// The cluster's barrier opens for all warps of the gang.
void MeetCluster(CoScheduledBlocks& gang);
/// An arrival or bytes reach the mbarrier at `place` after `latency`.
void NoteArrival(BlockState& x, const void* place, const Moment& latency);
/// `bytes` of a bulk copy reach shared memory and the mbarrier at `place`, after those of earlier
/// copies.
void NoteTransfer(BlockState& x, const void* place, uint32_t bytes);
/// The current warp saw the mbarrier's phase complete.
void NoteWaited(BlockState& x, const void* place);
/// The block's last instruction issues then.
Moment EndOfBlock(const BlockState& x);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
