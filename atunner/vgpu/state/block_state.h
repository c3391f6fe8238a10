// The state of the blocks that run: what a worker thread of the host needs while it executes them.
// Everything below lives in one namespace per instruction set: the handlers are compiled twice, for
// AVX2 and for any x86-64, and the loader picks one.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "atunner/device/device.h"
#include "atunner/ptx/module.h"
#include "atunner/vgpu/memory/memory.h"
#include "atunner/vgpu/memory/write_log.h"
#include "atunner/vgpu/state/counting.h"
#include "atunner/vgpu/state/decoded.h"
#include "atunner/vgpu/state/lane_access.h"
#include "atunner/vgpu/state/shared_shadow.h"
#include "atunner/vgpu/state/system_facts.h"
#include "atunner/vgpu/state/warp.h"
#include "atunner/vgpu/state/warp_clock.h"
#include "atunner/vgpu/timing/sass_schedule.h"

namespace atunner::vgpu {
class GridProgress;
}

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

struct Launch;
struct CoScheduledBlocks;

/// How the addresses of an access's lanes are related; anything but kApart takes all 32 lanes.
enum class Layout : uint8_t {
  kApart,
  kDense,  ///< lane l accesses the element l of an array
  kSame    ///< all lanes access one element
};

/// Bounds of the addresses in a register. Those of 64 bits are compared as signed numbers, because
/// vector instructions do so.
struct Span {
  int64_t low = INT64_MAX;
  int64_t high = INT64_MIN;
  uint64_t bits = 0;  ///< bits that are set in any lane
  Layout layout = Layout::kApart;
};
struct KnownSpan {
  Span span;
  uint64_t basic_block = 0;  ///< SpanCache::basic_block when the span was computed
  uint32_t bytes = 0;        ///< of a lane's access
  uint32_t wavefronts = 0;   ///< in shared memory, 0 = not counted yet
  /// Lanes l and l + period have the same address, and so have `run` lanes from a multiple of `run`
  /// on. Both are powers of two.
  uint8_t period = kLanes;
  uint8_t run = 1;
};
/// Spans of address registers, which several accesses of a basic block share: x[i], x[i + 1] …
struct SpanCache {
  std::vector<KnownSpan> of_slot;  ///< per register slot
  uint64_t basic_block = 0;        ///< number of the current execution of a basic block
};

/// Arrivals at one barrier of a block.
struct BarrierState {
  uint32_t arrived = 0;    ///< threads
  uint32_t expected = 0;   ///< threads, 0 = all
  uint32_t votes = 0;      ///< bar.red: threads whose predicate was true
  uint64_t clocks = 0;     ///< Warp::clocks of the latest warp that arrived
  HappensBefore released;  ///< by the warps that arrived, where not all warps of the block do
};

struct SharedMemory {
  std::vector<std::byte> bytes;
  size_t reserved_at = 0;  ///< where the Kernel::reserved_shared bytes of the system begin
};

/// The stacks of all threads of a block.
struct LocalMemory {
  std::vector<std::byte> bytes;
  std::vector<uint8_t> defined;  ///< per byte: 1 = written; empty unless EnabledChecks::memory
};

/// A block's place in its cluster, and accesses of other blocks of the cluster to its memory.
struct ClusterState {
  uint32_t rank = 0;
  std::vector<uint32_t> phase;      ///< per thread: phase of the cluster barrier it last arrived in
  std::vector<ClusterWord> words;   ///< per shared word; empty before the first remote access
  ClusterWord::Access last_access;  ///< the latest remote access
  /// Vector clock: per block of the cluster, its latest epoch that happens before the current
  /// events of this block.
  std::vector<uint32_t> happens_before;
  /// RaceShadow::epoch of this block when the blocks of the cluster were last synchronised.
  uint32_t synchronised_epoch = 0;
};

/// Which checks a launch asks for.
struct EnabledChecks {
  bool any = false;
  bool sync = false;          ///< misuse of barriers and of warp-level synchronisation
  bool memory = false;        ///< uninitialised reads of global and local memory
  bool track_stores = false;  ///< global memory has shadows: stores mark what they define
  bool global_races = false;
};

/// The block in the race check of global memory.
struct GlobalOrder {
  uint32_t serial = 0;  ///< number of this block among the blocks of all launches
  /// Time of the RaceClock up to which the block knows of other blocks' fences; 0 = of none
  uint64_t acquired = 0;
  bool observed = false;  ///< a thread has read a flag that another block wrote
  bool fenced = false;    ///< the block has fences in the RaceClock
};

/// Hazards found so far.
struct HazardLog {
  std::vector<Hazard> hazards;
  /// By operation and kind: index in `hazards`
  std::map<std::pair<uint32_t, Hazard::Kind>, size_t> reported;
  /// Results of static analyses of operations, by the number of the analysis.
  std::map<std::pair<const Op*, uint32_t>, bool> analyses;
};

/// Values that lanes got by shuffles from lanes which did not take part. They are undefined, and
/// watched from the first such shuffle of a host thread's blocks on.
struct ShuffledValues {
  bool tracked = false;
  /// By operation: those that compute with what shuffles may have returned
  std::unordered_map<uint32_t, MaybeUndefined> uses;
  /// Per warp and slot: mask of the lanes whose register holds such a value
  std::vector<std::vector<uint32_t>> undefined;
  const Op* shuffle = nullptr;  ///< the latest shuffle from an absent lane
  int lane = 0;                 ///< that received the value
  int source = 0;
};

/// Global allocations that were accessed last: most accesses hit one of them.
struct AllocationCache {
  std::array<Range, 4> ranges{};
  uint32_t oldest = 0;
  uint32_t generation = 0;  ///< Memory::generation when `ranges` was filled
};

/// How far a block has come, and what its threads wait for.
struct Progress {
  uint64_t instructions = 0;
  uint64_t alive_threads = 0;
  std::array<BarrierState, 16> barriers{};
  /// An atomic or a volatile load ran since the last backward branch: a loop around it may wait for
  /// other threads.
  bool polled = false;
  bool yield = false;    ///< a kMayYield operation waits for other threads
  bool yielded = false;  ///< the warp that ran last waits for other threads
  /// No thread can proceed: a polling loop is left as if the awaited value had come (only where a
  /// sample of the blocks runs), see Launch::sampled.
  bool leave_polling_loops = false;
  std::vector<uint32_t> polling_loops;  ///< backward branches of loops that only poll
};

/// What a block leaves for the host, beside its results in memory.
struct LaunchRecord {
  std::string printed;  ///< output of printf
  WriteLog written;     ///< filled if LaunchFlags::log_writes
};

/// Everything that a worker thread needs while it executes one block. Reused from block to block.
struct BlockState {
  // Used by nearly every operation.
  const Launch* launch = nullptr;
  const Kernel* kernel = nullptr;
  Warp* warp = nullptr;  ///< the warp that runs
  std::vector<Warp> warps;
  bool stop = false;  ///< the block must not go on, because of a hazard
  /// Watch() must look at operations before they run: pending wgmma hold registers of this warp.
  bool watch = false;
  uint64_t block = 0;  ///< linear index in the grid
  std::array<uint32_t, 3> ctaid{};
  uint32_t threads = 0;
  CoScheduledBlocks* peers = nullptr;
  SharedMemory shared;
  LocalMemory local;
  SpanCache spans;
  AllocationCache allocations;
  Progress progress;
  EnabledChecks checks;
  RaceShadow shadow;
  ClusterState cluster;
  AsyncState async;
  GlobalOrder global;
  HazardLog log;
  ShuffledValues shuffled;
  Counting counting;
  TimingState timing;
  LaunchRecord record;

  uint32_t* Slot(int32_t slot) { return warp->Slot(slot); }
  const uint32_t* Source(int32_t slot) const { return warp->Slot(slot); }
  uint32_t ThreadOf(int lane) const { return warp->index * kLanes + static_cast<uint32_t>(lane); }
};

/// Blocks that one thread of the host runs side by side: the blocks of a cluster, its share of a
/// cooperative grid, or one block, which is joined by the next ones while it waits for values that
/// other blocks write to global memory.
struct CoScheduledBlocks {
  std::vector<BlockState*> members;
  std::vector<uint64_t> blocks;  ///< linear indices, one per member
  /// Adds one more block and sets its index; nullptr when there is no further one.
  std::function<BlockState*(uint64_t& block)> next;
  uint64_t cluster_arrived = 0;                      ///< threads at barrier.cluster
  uint32_t cluster_phase = 0;                        ///< how often it has opened
  std::unordered_map<const void*, Moment> arrivals;  ///< at mbarriers, while timed
  GridProgress* grid = nullptr;                      ///< of a cooperative grid on several threads
};

/// The checks and counts of a launch, from ExecOptions.
struct LaunchFlags {
  bool check = false;
  bool check_global = false;
  bool keep_going = false;
  uint8_t groups = kAllHazards;
  bool count = false;
  bool count_lines = false;
  bool timed = false;
  bool log_writes = false;
};

struct Launch {
  const Kernel* kernel = nullptr;
  const ptx::ValidModule* module = nullptr;
  const Memory* memory = nullptr;
  LaunchShape shape;
  std::vector<std::byte> params;
  Dim3 cluster{1, 1, 1};
  bool cooperative = false;     ///< because of the launch or of an instruction of the kernel
  uint64_t grid_workspace = 0;  ///< address, of a cooperative launch
  DeviceHeap* heap = nullptr;
  Latencies latencies;
  const SassSchedule* schedule = nullptr;  ///< nullptr where the machine code is not known
  TimingTable timing;                      ///< filled for timed launches
  uint32_t registers = 0;                  ///< of a thread, 0 = unknown
  uint64_t l1_sectors = 0;                 ///< sectors that L1 holds for a block
  uint64_t resident_blocks = 0;            ///< blocks that run at once
  SystemFacts system;                      ///< what special registers tell
  RaceClock* clock = nullptr;
  uint32_t first_serial = 0;  ///< serial of block 0; 0 = no race check of global memory
  bool parallel = false;      ///< several threads of the host run blocks
  bool sampled = false;       ///< only some of the blocks run, and do not wait for the others
  LaunchFlags options;
};

/// The address of a hazard, and the other access of a race.
struct Fault {
  Space space = Space::kGeneric;  ///< kGeneric = no address
  uint64_t address = 0;
  std::optional<Hazard::Site> other;
};
/// Notes a hazard and stops the block, unless the launch keeps going and the kernel can.
void Report(BlockState& x, const Op& op, Hazard::Kind kind, int lane, const std::string& what,
            const Fault& fault = {});
/// Counts one more occurrence if the operation was already reported for this hazard; else false.
bool ReportedBefore(BlockState& x, const Op& op, Hazard::Kind kind);
/// The source location of a thread's access.
Hazard::Site SiteOf(const BlockState& x, const Op& op, uint64_t block, uint32_t thread);
/// The line that reports name: of the source if it is known, else of the PTX.
inline uint32_t LineOf(const BlockState& x, const Op& op) {
  return LocationOf(*x.kernel, op).Shown();
}
/// Notes a read of unwritten shared memory, see RaceShadow::unwritten_read.
void ReportUnwritten(BlockState& x, const Op& op, int lane, const std::string& what,
                     const Fault& fault = {});
/// Lanes of `mask` whose value in `slot` is that of its first lane.
uint32_t LanesAlike(const uint32_t* slot, uint32_t mask);

/// Decodes a kernel and the functions it can call. kUnsupported names what is missing.
Result<Kernel> Decode(const ptx::ValidModule& module, const ptx::Function& function,
                      const std::unordered_map<std::string, uint64_t>& symbols);

/// Executes a call at `pc` for the lanes of `mask`. Appends groups one call level deeper to the
/// warp.
void Call(BlockState& x, const Op& op, uint32_t mask, uint32_t pc);
/// Executes a return for the lanes of `mask`, at call level `depth`.
void Return(BlockState& x, const Op& op, uint32_t mask, uint32_t depth);
/// Byte `offset` of a lane's stack frame, of the function with this frame slot.
std::byte* FrameByte(BlockState& x, int32_t frame_slot, int lane, uint32_t offset);

/// A copy of the kernel in which operations on maybe-uninitialised registers are
/// Flow::kMaybeUndefined.
Kernel FindMaybeUndefined(const Kernel& kernel);
/// True if the values that the load `op` reads are only compared and selected by comparisons.
/// Merges do so with the element behind a list before they find that the list has ended.
bool OnlyChosenBetween(const Kernel& kernel, const Op& op);
/// True if the code does not use the `bytes` bytes from `offset` on of a load. Compilers widen
/// loads.
bool Dropped(const Kernel& kernel, const Op& op, uint64_t offset, uint64_t bytes);
/// Reports undefined registers whose value an operation needs. `mask`: lanes of its group;
/// `active`: lanes that execute it.
void CheckMaybeUndefined(BlockState& x, const Op& op, const MaybeUndefined& use, uint32_t mask,
                         uint32_t active);

/// After a store of maybe-uninitialised registers: marks the undefined bytes in the block's memory.
void KeepUndefined(BlockState& x, const Op& op, const MaybeUndefined& use, uint32_t active);

/// Prepares a state for blocks of a launch.
void Prepare(BlockState& x, const Launch& launch);
/// Adds the counts of a state to `counts`, and per source line to `lines`.
void CollectCounts(const BlockState& x, Counts& counts, LineCounts& lines);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
