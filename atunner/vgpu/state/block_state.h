// The engine's inner types. Everything below lives in an inline-less namespace per instruction set:
// the handlers are compiled twice, for AVX2 and for any x86-64, and the loader picks one.
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
#include "atunner/vgpu/memory/sectors.h"
#include "atunner/vgpu/state/decoded.h"
#include "atunner/vgpu/state/warp_clock.h"
#include "atunner/vgpu/timing/counts.h"
#include "atunner/vgpu/timing/sass_schedule.h"

namespace atunner::vgpu {
class Company;
}

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

/// Lanes of a warp at one place.
struct Group {
  uint32_t pc = 0;
  uint32_t mask = 0;
  /// Waits at this barrier; kWarpBarrier = for lanes of its own warp
  int barrier = -1;
  const Op* reduction = nullptr;  ///< bar.red that receives a result when the barrier opens
  uint32_t depth = 0;             ///< of calls
};
constexpr int kWarpBarrier = 64;
/// Before a shuffle, vote or product, for the lanes that it names
constexpr int kCollective = 65;
constexpr int kClusterBarrier = 66;  ///< for the threads of all blocks of the cluster
constexpr int kGroupBarrier = 67;    ///< before a product, for the other warps of the warp group
constexpr uint32_t kGroupWarps = 4;
constexpr uint32_t kWholeGroup = 1;

/// What a lane comes back to.
struct ReturnPoint {
  uint32_t call_op = 0;
  uint32_t frame = 0;           ///< of the caller
  uint32_t claimed = 0;         ///< Warp::claimed before the call
  std::vector<uint32_t> saved;  ///< registers of a recursive callee's outer activation
};

/// A wgmma whose registers are in use until wgmma.wait_group, or a move of such a register.
struct PendingProduct {
  uint32_t group = 0;  ///< wgmma.commit_group before it
  const Op* op = nullptr;
};
enum Held : uint8_t { kFree, kRead, kWritten };

struct Warp {
  std::vector<SlotLanes> file;    ///< the constants, in reverse, and the registers
  uint32_t* registers = nullptr;  ///< slot 0 in `file`
  uint32_t* Slot(int32_t slot) const { return registers + static_cast<ptrdiff_t>(slot) * kLanes; }
  std::vector<Group> groups;
  uint32_t alive = 0;
  uint32_t index = 0;
  uint32_t sync_epoch = 0;      ///< grows with every warp-level synchronisation
  uint32_t members = 0;         ///< mask of the bar.warp.sync that lanes wait at
  uint32_t seen_epoch = 0;      ///< what happened before this epoch is ordered before what follows
  uint32_t proxy_epoch = 0;     ///< of the last fence.proxy.async
  uint32_t product_groups = 0;  ///< wgmma.commit_group so far
  std::vector<PendingProduct> products;
  std::vector<Held> held;  ///< per slot: what pending products do with it
  uint32_t carry = 0;      ///< CC register: one bit per lane
  uint32_t turn = 0;       ///< of the groups, when one spins
  uint32_t spins = 0;      ///< backward branches since another group ran
  uint32_t retries = 0;    ///< of the mbarrier.try_wait at hand
  /// Digest of the registers with which it last went back to look once more
  uint64_t waited_with = 0;
  /// Per slot: lanes that hold nothing; only Kernel::suspect_slots are kept
  std::vector<uint32_t> undefined;
  std::vector<uint32_t> carried;  ///< likewise: of these, lanes that loaded it from shared memory
  std::array<std::vector<ReturnPoint>, kLanes> stack;
  /// Bytes of local memory, from its end, that alloca gave away
  std::array<uint32_t, kLanes> claimed{};
};

/// How the lanes of an access lie to each other; anything but kApart takes all 32.
enum class Layout : uint8_t { kApart, kDense, kSame };

/// What an address register holds. Those of 64 bits are compared as signed numbers, as vectors do.
struct Span {
  int64_t low = INT64_MAX;
  int64_t high = INT64_MIN;
  uint64_t bits = 0;  ///< set in any lane
  Layout layout = Layout::kApart;
};
struct KnownSpan {
  Span span;
  uint64_t stretch = 0;     ///< in which it was found: Exec::stretch
  uint32_t bytes = 0;       ///< of a lane's access
  uint32_t wavefronts = 0;  ///< in shared memory, 0 = not counted yet
  /// Lanes l and l + period have the same address, and so have `run` lanes from a multiple of it;
  /// powers of two.
  uint8_t period = kLanes;
  uint8_t run = 1;
};

/// What happens to a shared word asynchronously, and was not yet waited for.
/// kReachedInto: another block of the cluster touched it, see ClusterWord.
enum InFlight : uint8_t {
  kThreadCopy = 1,
  kBulkCopy = 2,
  kProductRead = 4,
  kBulkRead = 8,
  kReachedInto = 16
};
/// SharedShadow::writer or reader that is no thread of the block; kProductParty + i: a product of
/// warp group i.
enum Party : uint16_t {
  kProductParty = 0xfff0,
  kBulkParty = 0xfffd,
  kSeveral = 0xfffe,
  kNobody = 0xffff
};

/// Shadow of one shared 32-bit word.
struct SharedShadow {
  uint32_t write_epoch = 0;
  uint32_t read_epoch = 0;
  uint32_t write_sync = 0;
  uint32_t read_sync = 0;
  uint16_t writer = kNobody;
  uint16_t reader = kNobody;  ///< kSeveral: threads of several warps
  uint8_t initialised = 0;    ///< one bit per byte
  uint8_t in_flight = 0;      ///< see InFlight
  uint32_t write_line = 0;
  uint32_t read_line = 0;
};

/// The latest volatile accesses to a shared 32-bit word.
struct WarpExchange {
  struct Access {
    uint32_t epoch = 0;
    uint32_t sync = 0;   ///< Warp::sync_epoch
    uint32_t lanes = 0;  ///< that executed it
    uint32_t line = 0;
    uint16_t thread = kNobody;
  };
  Access read;
  Access write;
};

/// The latest accesses to a shared 32-bit word by other blocks of the cluster.
struct ClusterWord {
  struct Access {
    uint32_t epoch = 0;  ///< of the block that owns the word; 0 = none
    uint32_t rank = 0;   ///< of the block that reached into it
    uint32_t thread = 0;
    const Op* op = nullptr;
  };
  Access read;
  Access write;
};

struct PendingCopy {
  uint32_t word = 0;
  uint32_t words = 0;
  uint32_t group = 0;
};

/// Shared words that a bulk copy wrote, in flight until somebody waited for the phase of its
/// mbarrier.
struct BulkLanding {
  uint64_t barrier = 0;   ///< shared address in the same block
  bool complete = false;  ///< the phase has ended
  uint32_t word = 0;
  uint32_t words = 0;
  uint32_t line = 0;
};
struct WordRange {
  uint32_t first = 0;
  uint32_t count = 0;
};
/// Shared words that are read until a wait: by products of a warp group, or by bulk copies of a
/// thread.
struct AsyncReads {
  uint16_t reader = kNobody;  ///< a thread or a Party
  uint32_t group = 0;         ///< commits before
  uint32_t line = 0;
  std::vector<WordRange> ranges;
};

/// How often an operation ran, and for how many lanes. Differences of them may be "negative".
struct Tally {
  uint64_t times = 0;
  uint64_t lanes = 0;
};

/// Arrivals at one barrier of a block.
struct BarrierState {
  uint32_t arrived = 0;   ///< threads
  uint32_t expected = 0;  ///< threads, 0 = all
  uint32_t votes = 0;     ///< bar.red: threads whose predicate was true
};

struct Launch;
struct Gang;

/// Everything one worker thread needs while it executes one block. Reused from block to block.
struct Exec {
  const Launch* launch = nullptr;
  const Kernel* kernel = nullptr;
  Warp* warp = nullptr;
  std::vector<Warp> warps;
  std::vector<std::byte> shared;
  size_t reserved_shared = 0;  ///< where Kernel::reserved_shared bytes begin
  std::vector<SharedShadow> shadow;
  /// Per shared word: the epoch in which threads of several warps read it and nothing else happens
  /// to it, so that one more read is no news. 0 = look at the shadow.
  std::vector<uint32_t> calm;
  /// Per byte of shared memory: an undefined register was stored there; Kernel::carries
  std::vector<uint8_t> hollow;
  std::vector<WarpExchange> exchanges;  ///< per shared word, where volatile accesses were
  /// Per shared word, where other blocks of the cluster were
  std::vector<ClusterWord> reached_into;
  ClusterWord::Access last_reach;  ///< the latest of them
  /// Per block of the cluster, the epoch of it up to which word may have come
  std::vector<uint32_t> heard;
  /// `epoch` when the blocks of the cluster last were ordered
  uint32_t cluster_epoch = 0;
  std::vector<std::byte> local;
  std::array<uint32_t, 3> ctaid{};
  uint64_t block = 0;
  uint32_t threads = 0;
  uint32_t epoch = 1;
  std::array<BarrierState, 16> barriers{};
  std::vector<std::vector<PendingCopy>> pending;  ///< per thread
  std::vector<uint32_t> copy_group;               ///< per thread
  std::array<Range, 4> ranges{};                  ///< allocations that were last touched
  uint32_t oldest_range = 0;
  uint32_t generation = 0;  ///< Memory::generation of `ranges`
  std::vector<Hazard> hazards;
  std::string printed;  ///< by printf
  /// The first read of shared memory that nothing was written to. A later write without a barrier
  /// makes it a race; otherwise it is reported when the block ends.
  std::optional<Hazard> unwritten;
  /// What was found out about operations, by the number of the question.
  std::map<std::pair<const Op*, uint32_t>, bool> answers;
  /// By operation: index in `hazards`
  std::map<std::pair<uint32_t, Hazard::Kind>, size_t> reported;
  bool stop = false;
  /// All wait: who only looks goes on as if what it waits for had come, see answers
  bool answered = false;
  std::vector<uint32_t> waits_at;  ///< branches back of loops that only look
  bool check = false;
  bool check_sync = false;
  bool track = false;         ///< global memory has shadows: stores note what they define
  bool check_global = false;  ///< local memory likewise
  bool races = false;         ///< in global memory
  uint32_t serial = 0;        ///< of this block, among all of all launches
  /// RaceClock's time when a thread last looked at what others publish; 0 = never
  uint64_t acquired = 0;
  std::vector<uint8_t> local_defined;
  bool count = false;
  bool count_lines = false;
  bool timed = false;               ///< ExecOptions::timeline
  std::vector<OpCounts> op_counts;  ///< per op, ExecOptions::count_lines
  std::vector<Tally> executed;      ///< per op
  /// Per op, and one past the last: what changes where a stretch of operations without flow begins
  /// and ends.
  std::vector<Tally> stretches;
  SectorTable load_sectors;
  SectorTable store_sectors;
  CommonSectors common_sectors;  ///< that all blocks so far read
  PatternTable conflicts;        ///< of shared memory's banks
  Counts counts;
  uint64_t instructions = 0;
  uint64_t clock = 0;
  std::vector<KnownSpan> spans;  ///< per slot
  uint64_t stretch = 0;          ///< number of the stretch of operations without flow at hand
  /// Operations need a look before they run: products hold registers of this warp
  bool watch = false;
  std::vector<AsyncReads> async_reads;
  std::vector<BulkLanding> landings;
  /// Of an mbarrier: who waited for its last phase has seen this
  std::unordered_map<uint64_t, uint32_t> phase_epoch;
  /// Per thread: cp.async.bulk.commit_group so far
  std::vector<uint32_t> bulk_groups;
  /// Warp::seen_epoch of the latest fence.proxy.async
  uint32_t proxy_seen = 0;
  std::vector<WarpTime> times;        ///< per warp, while timed
  std::vector<uint64_t> issued_runs;  ///< of the schedule, how often
  /// Machine instructions under predicates that held for no lane
  uint64_t passed_over = 0;
  Ports ports;  ///< likewise
  Touch touch;  ///< of the operation at hand
  /// By this block, all that the bulk copy at hand brings
  bool read_before = true;
  std::vector<Noted> noted;  ///< of the operations from `timed_from` on
  /// In the stretch at hand, what the timeline has not seen
  uint32_t timed_from = 0;
  uint32_t place = 0;  ///< of the operation that runs, while timed
  uint64_t alive_threads = 0;
  bool polled = false;  ///< an atomic or a volatile load ran: a loop around it waits for others
  bool yield = false;   ///< a kPatient operation waits for others
  bool waits = false;   ///< the warp that ran last gave others a turn
  Gang* gang = nullptr;
  uint32_t rank = 0;                    ///< in the cluster
  std::vector<uint32_t> cluster_phase;  ///< per thread: in which it last arrived

  uint32_t* Slot(int32_t slot) { return warp->Slot(slot); }
  const uint32_t* Source(int32_t slot) const { return warp->Slot(slot); }
  uint32_t ThreadOf(int lane) const { return warp->index * kLanes + static_cast<uint32_t>(lane); }
};

/// Blocks that run side by side: a cluster, those of a cooperative grid that one thread of the host
/// runs, or one block, which is joined by the next ones while it waits for what others write to
/// global memory.
struct Gang {
  std::vector<Exec*> members;
  std::vector<uint64_t> blocks;  ///< linear indices, one per member
  /// One more member; nullptr when there is none
  std::function<Exec*(uint64_t& block)> next;
  uint64_t cluster_arrived = 0;                      ///< threads at barrier.cluster
  uint32_t cluster_phase = 0;                        ///< times that it opened
  std::unordered_map<const void*, Moment> arrivals;  ///< at mbarriers, while timed
  Company* company = nullptr;                        ///< of a cooperative grid
};

struct Launch {
  const Kernel* kernel = nullptr;
  const ptx::ValidModule* module = nullptr;
  const Memory* memory = nullptr;
  LaunchShape shape;
  std::vector<std::byte> params;
  Dim3 cluster{1, 1, 1};
  bool cooperative = false;     ///< by the launch or by what the kernel does
  uint64_t grid_workspace = 0;  ///< of a cooperative launch
  DeviceHeap* heap = nullptr;
  Latencies latencies;
  const Schedule* schedule = nullptr;  ///< where the machine code is known
  TimingTable timing;                  ///< of timed ones
  uint32_t registers = 0;              ///< of a thread, 0 = unknown
  uint64_t l1_sectors = 0;             ///< that L1 holds for a block
  uint64_t resident_blocks = 0;        ///< that run at once
  RaceClock* clock = nullptr;
  uint32_t first_serial = 0;  ///< of block 0; 0 = races in global memory are not looked for
  bool parallel = false;      ///< several threads of the host run blocks
  bool answers = false;       ///< only a sample of the blocks runs: nobody waits for the others
  bool check = false;
  bool check_global = false;
  bool keep_going = false;
  uint8_t groups = kAllHazards;
  bool count = false;
  bool count_lines = false;
  bool timed = false;
};

/// The address at fault, and who else touched it.
struct Fault {
  Space space = Space::kGeneric;  ///< kGeneric = no address
  uint64_t address = 0;
  std::optional<Hazard::Site> other;
};
/// Notes a hazard and stops the block, unless the launch keeps going and the kernel can.
void Report(Exec& x, const Op& op, Hazard::Kind kind, int lane, const std::string& what,
            const Fault& fault = {});
/// Counts a hazard that this operation was reported for already; false when it was not.
bool ReportedBefore(Exec& x, const Op& op, Hazard::Kind kind);
/// What a thread's place in the source is called.
Hazard::Site SiteOf(const Exec& x, const Op& op, uint64_t block, uint32_t thread);
/// The line that reports name: of the source, or of the PTX.
inline uint32_t LineOf(const Exec& x, const Op& op) { return PlaceOf(*x.kernel, op).Shown(); }
/// Notes a read of unwritten shared memory, see Exec::unwritten.
void ReportUnwritten(Exec& x, const Op& op, int lane, const std::string& what,
                     const Fault& fault = {});
/// Lanes of `mask` whose value in `slot` is that of its first lane.
uint32_t LanesAlike(const uint32_t* slot, uint32_t mask);

/// A lane's value of type T in a slot; 8-byte types span two slots, narrower ones use the low bits
/// of 32.
template <class T>
struct Lane {
  static constexpr bool kWide = sizeof(T) == 8;
  using Store = std::conditional_t<kWide, uint64_t, uint32_t>;
  static Store Bits(T value) {
    if constexpr (sizeof(T) == 8)
      return std::bit_cast<uint64_t>(value);
    else if constexpr (sizeof(T) == 4)
      return std::bit_cast<uint32_t>(value);
    else if constexpr (sizeof(T) == 2)
      return std::bit_cast<uint16_t>(value);
    else
      return std::bit_cast<uint8_t>(value);
  }
  static T Get(const uint32_t* slot, int lane) {
    Store raw;
    std::memcpy(&raw, slot + ptrdiff_t{lane} * (kWide ? 2 : 1), sizeof raw);
    if constexpr (sizeof(T) == 8)
      return std::bit_cast<T>(raw);
    else if constexpr (sizeof(T) == 4)
      return std::bit_cast<T>(raw);
    else if constexpr (sizeof(T) == 2)
      return std::bit_cast<T>(static_cast<uint16_t>(raw));
    else
      return std::bit_cast<T>(static_cast<uint8_t>(raw));
  }
  static void Set(uint32_t* slot, int lane, T value) {
    const Store raw = Bits(value);
    std::memcpy(slot + ptrdiff_t{lane} * (kWide ? 2 : 1), &raw, sizeof raw);
  }
};

/// Applies `f(lane)` to the active lanes; the full-mask loop is the one compilers vectorise.
template <class F>
inline void ForLanes(uint32_t mask, F&& f) {
  if (mask == ~0u) {
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
  } else {
    for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
  }
}

/// Decodes a kernel and the functions it can call. kUnsupported names what is missing.
Result<Kernel> Decode(const ptx::ValidModule& module, const ptx::Function& function,
                      const std::unordered_map<std::string, uint64_t>& symbols);

/// Where lanes of `mask` go on after a call from `pc`, appended to the warp's groups one level
/// deeper.
void Call(Exec& x, const Op& op, uint32_t mask, uint32_t pc);
/// Likewise after a return, one level up.
void Return(Exec& x, const Op& op, uint32_t mask, uint32_t depth);
/// The thread's stack frame byte `offset` of the function whose frame slot is `frame_slot`.
std::byte* FrameByte(Exec& x, int32_t frame_slot, int lane, uint32_t offset);

/// A copy of the kernel whose operations on possibly undefined registers are Flow::kSuspect.
Kernel FindSuspects(const Kernel& kernel);
/// What the load `op` reads is compared and chosen by comparison, and nothing else: a merge looks
/// at the place behind a list's end before it finds that the list has ended.
bool OnlyChosenBetween(const Kernel& kernel, const Op& op);
/// Does the compiler say that of what the load `op` reads the `bytes` from `offset` on are dropped?
/// It widens loads.
bool Dropped(const Kernel& kernel, const Op& op, uint64_t offset, uint64_t bytes);
/// Reports undefined registers that a suspect needs among the lanes `mask` of its group; `active`
/// lanes execute it.
void CheckSuspect(Exec& x, const Op& op, const Suspect& suspect, uint32_t mask, uint32_t active);

/// Behind a store of registers that may be undefined: memory of the block is what they were.
void KeepUndefined(Exec& x, const Op& op, const Suspect& suspect, uint32_t active);

/// Makes `x` ready for blocks of `launch`.
void Prepare(Exec& x, const Launch& launch);
/// Runs the blocks of a gang to their end; `budget` is of instructions, for each. `outcome` is set
/// when they do not complete.
void RunGang(Gang& gang, double deadline, uint64_t budget, LaunchOutcome& outcome);
/// Adds what `x` executed to `counts`, and to those of the source's lines.
void CollectCounts(const Exec& x, Counts& counts, LineCounts& lines);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
