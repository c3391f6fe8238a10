// Data of a block's timeline: the time at which each warp would issue each instruction if the block
// had the SM to itself. timeline/timeline.cpp describes the model.
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

inline constexpr size_t kQuarters =
    4;  ///< quarters of an SM, each with a scheduler and tensor core

/// Units that the warps of a block share: each serves one access at a time.
struct Ports {
  Port l2;       ///< the path of bulk copies into the SM
  Port cluster;  ///< the path to other blocks' shared memory
  Port shared;
  std::array<Port, kQuarters> tensor;  ///< wgmma
  std::array<Port, kQuarters> issue;
};

inline Moment Latest(const Moment& a, const Moment& b) {
  return {std::max(a[0], b[0]), std::max(a[1], b[1])};
}

/// One operation as the timeline sees it. Its registers are in Kernel::track_list, those that it
/// reads first.
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
  /// A branch over so few instructions that the assembler predicates these instead
  bool predicated = false;
  bool unordered = false;  ///< a load of memory that no store changes: .nc, constants
  /// Arithmetic that computes a load's address, which the assembler moves ahead with the load
  bool leads = false;
  bool meets = false;       ///< mbarriers and bulk copies, by which warps wait for each other
  bool constant = false;    ///< the result is a parameter or an address that needs no register
  bool streams = false;     ///< an evict-first load, which no cache keeps
  int32_t base = -1;        ///< register of the first address
  uint16_t load_words = 0;  ///< registers that a load fills
  uint32_t products = 0;    ///< multiply-adds of a wgmma, scaled to elements of 16 bits
  uint16_t live = 0;        ///< registers in use before the operation, in program order
  OpCost cost;
};

/// Where the access of the current operation found its data.
struct Touch {
  /// kL2: the block loaded it before, but L1 has evicted it
  enum class Level : uint8_t { kNone, kShared, kRemote, kL1, kL2, kMiss };
  Level level = Level::kNone;
  uint32_t wavefronts = 0;  ///< cycles that the load/store unit needs for it
  uint32_t copied = 0;      ///< bytes that an asynchronous copy loads from L2 or DRAM
};
/// An operation that accessed memory, or that no lane executed.
struct Noted {
  uint32_t pc = 0;
  bool active = false;
  Touch touch;
};

/// The parts of a Track that plain operations need, with the latencies of the launch.
struct Timing {
  double latency = 0;  ///< cycles from issue to result, without memory latency
  uint32_t first = 0;
  uint16_t live = 0;
  uint8_t reads = 0;
  uint8_t writes = 0;
  bool plain = false;  ///< waits only for its operands, if it accesses no memory
};
/// Cycles for which operations occupy their warp's issue slot and its share of the pipes.
struct Busy {
  double slots = 0, alu = 0, special = 0, tensor = 0;
};
/// Per-operation data of the timelines of a launch.
struct TimingTable {
  std::vector<Timing> timings;  ///< per operation; empty where the machine code is known
  std::vector<Busy> busy;       ///< prefix sums: of all operations before each; one past the last
  std::vector<uint8_t> marks;   ///< per operation: 1 = it must be noted each time it runs
};

/// A warp's clock. The assembler moves instructions within a basic block as early as their operands
/// allow; it does not move them between basic blocks.
struct WarpTime {
  Moment start{};   ///< when the basic block begins
  Moment issued{};  ///< the latest issue in it
  /// Cycles for which the basic block occupies the issue slot, and this warp's share of the pipes.
  double slots = 0, alu = 0, special = 0, tensor = 0, memory = 0;
  double Busy() const { return std::max({slots, alu, special, tensor, memory}); }
  /// Loads do not move above stores to addresses that may be equal. Different offsets from one
  /// register are different addresses.
  struct Stores {
    int32_t base = -1;  ///< address register of the last store
    Moment with_base{};
    Moment others{};
  };
  Stores shared_stores;
  Stores global_stores;
  Moment copies{};             ///< when all cp.async since the last commit have landed
  std::vector<Moment> groups;  ///< the same per committed group, oldest first
  std::vector<Moment> ready;   ///< per register: when its value is ready
  /// A position of the basic block in program order: the latest issue up to there.
  struct Position {
    Moment issued{};
    uint32_t load_words = 0;  ///< registers that all loads up to here fill
    uint32_t live = 0;
  };
  std::vector<Position> positions;  ///< the first `position_count` are of this basic block
  size_t position_count = 0;
  size_t oldest = 0;  ///< the first position to which a load may still move
  void AddPosition(const Position& position) {
    if (position_count == positions.size()) positions.resize(2 * position_count + 64);
    positions[position_count++] = position;
  }
  // The following members are used where the machine code is known (in_order.h).
  struct Accesses {
    std::vector<Touch> touches;  ///< since the operation's machine code was last issued
    size_t taken = 0;
  };
  std::array<Moment, 6> barriers{};  ///< when each scoreboard is free
  std::vector<Accesses> accesses;    ///< per operation
  Moment products{};                 ///< when all wgmma so far are done
  Moment earlier_products{};  ///< the same without the newest group, which began after a wait
  bool waited = true;         ///< no wgmma since the last wait
  uint32_t part = 0;          ///< the part of the schedule that waits to issue
  uint32_t pending = 0;       ///< how often that part must issue
  uint32_t jumps = 0;         ///< taken branches since that part began
};

/// When an access of the current warp that begins at `at` ends.
Moment DoneWith(BlockState& x, const Touch& touch, const Moment& at);
/// cp.async.wait_group: when all but the newest `newest` groups have landed. Removes those groups.
Moment LandedBy(WarpTime& time, uint64_t newest);

/// The track of an instruction. Appends the registers of its operands, numbered from `first`, to
/// `list`.
Track TrackOf(const ptx::Instruction& instruction, uint32_t first, std::vector<int32_t>& list);

/// Fills Track::live, which bounds how far the assembler moves loads ahead. `words`: machine
/// registers per register.
void MarkLive(Kernel& kernel, const std::vector<uint8_t>& words);

TimingTable TimingsOf(const Launch& launch);

/// Adds an operation that changes the flow to the current warp's timeline. `active`: some lanes
/// execute it.
void Advance(BlockState& x, const Op& op, uint32_t pc, bool active);
/// Notes an operation without flow that is marked, accessed memory, or was executed by no lane.
void Note(BlockState& x, uint32_t pc, bool active);
/// Adds the operations from TimingState::next up to `end` to the timeline. All lanes executed them,
/// except where Note said otherwise.
void PassTime(BlockState& x, uint32_t end);
/// Ends the basic block: the next instruction issues at least `gap` cycles later.
void EndBasicBlock(BlockState& x, double gap = 0);
/// A barrier of the block opens for these warps.
void SynchroniseWarps(BlockState& x, const std::vector<uint32_t>& waiting);
/// The barrier of the cluster opens for all its warps.
void SynchroniseCluster(CoScheduledBlocks& peers);
/// An arrival or bytes reach an mbarrier after `latency`.
void NoteArrival(BlockState& x, const void* barrier, const Moment& latency);
/// `bytes` bytes of a bulk copy reach shared memory and an mbarrier, after those of earlier copies.
void NoteTransfer(BlockState& x, const void* barrier, uint32_t bytes);
/// The current warp has waited for the phase of an mbarrier.
void NoteWaited(BlockState& x, const void* barrier);
/// When the last instruction of the block has issued.
Moment EndOfBlock(const BlockState& x);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
