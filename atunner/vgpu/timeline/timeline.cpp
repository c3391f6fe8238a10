// The time model of one warp: when it issues each instruction if its block has the SM to itself.
//
// The virtual GPU executes PTX, and the order and latency of machine instructions are modelled
// while it does so. The estimator (timing/estimate.cpp) combines the resulting path length of a
// block with the throughput of the units that blocks share.
//
// A Moment is a time in cycles, twice: loads that miss L1 are served by L2 in the first run and by
// DRAM in the second. Every warp has a clock (WarpTime):
//
//   * ready[r]   when the value of register r is available. An instruction issues when all its
//                operands are ready, and its result is ready one latency later (op_cost.def, and
//                the cache level that the access hit: Touch).
//   * start      when the current basic block began. The assembler reorders instructions within a
//                basic block, so that each issues as early as its operands allow, but not across.
//   * busy       cycles for which the basic block occupies the warp's issue slot and its share of
//   the
//                pipes (Busy, as prefix sums per operation).
//
// A basic block ends at the later of its last issue and start + busy (EndBasicBlock). Example, with
// latencies of 4 for arithmetic and 30 for a load that hits L1:
//
//     operation                 operands ready    issues    result ready
//     ld.global  %a, [%p]                0           0          30
//     add        %i, %i, 1               0           0           4     moved ahead of the load's
//     use fma        %c, %a, %b, %c         30          30          34 bra        loop 4 the block
//     ends at 30
//
// The next iteration begins at 30 plus the gap of a branch. Four things limit the reordering:
//
//   * the assembler looks kLookahead operations ahead for arithmetic;
//   * loads move ahead as long as registers are left for their results (EarliestLoad);
//   * loads do not move above stores to addresses that may be equal (AfterStores);
//   * branches wait for their predicate.
//
// Barriers set the clocks of the waiting warps to the latest of them (SynchroniseWarps). mbarriers
// keep the time of their latest arrival (NoteArrival, NoteWaited), cp.async groups and wgmma the
// time at which they land. Units that warps share, such as the path of bulk copies into the SM, are
// Ports: an access takes the first free interval.
//
// Where the machine code is known, instructions issue in its order instead: in_order.cpp.
#include <emmintrin.h>

#include <algorithm>
#include <utility>

#include "atunner/vgpu/state/block_state.h"
#include "atunner/vgpu/state/warp_clock.h"
#include "atunner/vgpu/timeline/in_order.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

Moment Later(const Moment& moment, double cycles) {
  return {moment[0] + cycles, moment[1] + cycles};
}

/// Latency of a memory access.
Moment MemoryLatency(const Latencies& latencies, const Touch& touch) {
  const double extra = touch.wavefronts > 0 ? touch.wavefronts - 1 : 0;
  switch (touch.level) {
    case Touch::Level::kMiss:
      return Later({latencies.miss[0], latencies.miss[1]}, extra);
    case Touch::Level::kL2:
      return Later({}, latencies.miss[0] + extra);
    case Touch::Level::kL1:
      return Later({}, latencies.l1 + extra);
    case Touch::Level::kRemote:
      return Later({}, latencies.remote);
    case Touch::Level::kShared:
      return Later({}, latencies.shared + extra);
    case Touch::Level::kNone:
      break;
  }
  return {};
}

}  // namespace

Moment DoneWith(BlockState& x, const Touch& touch, const Moment& at) {
  const Latencies& latencies = x.launch->latencies;
  Moment begin = at;
  if (touch.level == Touch::Level::kRemote)
    begin = x.timing.ports.cluster.Take(at, double{latencies.remote_busy} * touch.wavefronts);
  if (touch.copied > 0)
    begin = x.timing.ports.l2.Take(at, touch.copied / double{latencies.port_bytes_per_clk});
  const Moment access = MemoryLatency(latencies, touch);
  return {begin[0] + access[0], begin[1] + access[1]};
}

namespace {

constexpr size_t kLookahead = 20;  // operations by which the assembler moves arithmetic ahead

/// The earliest issue of a load: at the first position from which on the registers that loads fill
/// fit beside the live ones.
Moment EarliestLoad(const Launch& launch, WarpTime& time, const Track& track) {
  constexpr int64_t kLeast = 12;
  const uint32_t words = time.positions[time.position_count - 1].load_words + track.load_words;
  const auto fits = [&](const WarpTime::Position& position) {
    const int64_t room = std::max<int64_t>(kLeast, int64_t{launch.registers} - position.live);
    return int64_t{words} - position.load_words <= room;
  };
  while (time.oldest + 1 < time.position_count && !fits(time.positions[time.oldest])) ++time.oldest;
  return time.positions[time.oldest].issued;
}

/// Adds the cycles for which the operations from `first` up to `end` occupy issue slot and pipes.
void Occupy(WarpTime& time, const TimingTable& table, uint32_t first, uint32_t end) {
  const Busy& from = table.busy[first];
  const Busy& to = table.busy[end];
  time.slots += to.slots - from.slots;
  time.alu += to.alu - from.alu;
  time.special += to.special - from.special;
  time.tensor += to.tensor - from.tensor;
}

Moment AfterStores(WarpTime::Stores& stores, int32_t base, Moment at, bool store) {
  at = Latest(at, stores.others);
  if (stores.base != base) at = Latest(at, stores.with_base);
  if (!store) return at;
  if (stores.base != base) {
    stores.others = Latest(stores.others, stores.with_base);
    stores.base = base;
  }
  stores.with_base = at;
  return at;
}

__m128d Load(const Moment& moment) { return _mm_loadu_pd(moment.data()); }
void Store(Moment& to, __m128d moment) { _mm_storeu_pd(to.data(), moment); }

/// Adds plain operations from `pc` on that accessed no memory, up to `end`. Returns the first that
/// is not plain.
uint32_t PassPlain(const BlockState& x, WarpTime& time, uint32_t pc, uint32_t end) {
  const Timing* timings = x.launch->timing.timings.data();
  const int32_t* list = x.kernel->track_list.data();
  Moment* ready = time.ready.data();
  if (pc == end || !timings[pc].plain) return pc;
  if (time.position_count == 0) time.AddPosition({time.start, 0, timings[pc].live});
  const __m128d start = Load(time.start);
  __m128d issued = Load(time.issued);
  WarpTime::Position position = time.positions[time.position_count - 1];
  for (; pc < end && timings[pc].plain; ++pc) {
    const Timing& timing = timings[pc];
    const int32_t* slots = list + timing.first;
    __m128d at = start;
    if (time.position_count > kLookahead)
      at = _mm_max_pd(at, Load(time.positions[time.position_count - kLookahead].issued));
    for (int i = 0; i < timing.reads; ++i) at = _mm_max_pd(at, Load(ready[slots[i]]));
    issued = _mm_max_pd(issued, at);
    const __m128d done = _mm_add_pd(at, _mm_set1_pd(timing.latency));
    for (int i = 0; i < timing.writes; ++i) Store(ready[slots[timing.reads + i]], done);
    Store(position.issued, issued);
    position.live = timing.live;
    time.AddPosition(position);
  }
  Store(time.issued, issued);
  return pc;
}

/// When an operation issues.
Moment IssueOf(const BlockState& x, WarpTime& time, const Op& op, const Track& track,
               const Touch& touch) {
  const int32_t* slots = x.kernel->track_list.data() + track.first;
  Moment at = time.start;
  const bool ahead = track.load_words > 0 || track.leads;
  if (ahead && x.launch->registers > 0) at = Latest(at, EarliestLoad(*x.launch, time, track));
  if (!ahead && time.position_count > kLookahead)
    at = Latest(at, time.positions[time.position_count - kLookahead].issued);
  for (int i = 0; i < track.reads; ++i) at = Latest(at, time.ready[static_cast<size_t>(slots[i])]);
  const bool shared = touch.level == Touch::Level::kShared;
  if (touch.level != Touch::Level::kNone && !track.unordered)
    at = AfterStores(shared ? time.shared_stores : time.global_stores,
                     op.src[0] < 0 ? op.src[0] : track.base, at, track.store);
  if (op.flow == Flow::kBranch && op.guard >= 0 && !track.predicated)
    at = Later(at, x.launch->latencies.predicate);
  return at;
}

/// Adds one operation of any kind. The cycles that it occupies are counted already.
void PassOne(BlockState& x, uint32_t pc, const Touch& touch) {
  const Op& op = x.kernel->ops[pc];
  const Track& track = x.kernel->tracks[pc];
  WarpTime& time = x.timing.warps[x.warp->index];
  if (time.position_count == 0) time.AddPosition({time.start, 0, track.live});
  const Moment at = IssueOf(x, time, op, track, touch);
  time.issued = Latest(time.issued, at);
  const double latency = x.launch->timing.timings[pc].latency;
  const Moment done = Later(DoneWith(x, touch, at), latency);
  const int32_t* results = x.kernel->track_list.data() + track.first + track.reads;
  for (int i = 0; i < track.writes; ++i) time.ready[static_cast<size_t>(results[i])] = done;
  time.AddPosition({time.issued,
                    time.positions[time.position_count - 1].load_words + track.load_words,
                    track.live});
  if (track.cost.wait == Wait::kRounded) {  // no other instruction overlaps with it
    time.issued = Latest(Later(time.start, time.Busy()), done);
    EndBasicBlock(x);
  }
  switch (track.role) {
    case Track::Role::kAsyncCopy:
      time.copies = Latest(time.copies, done);
      break;
    case Track::Role::kAsyncCommit:
      time.groups.push_back(time.copies);
      time.copies = {};
      break;
    case Track::Role::kAsyncWait:
      EndBasicBlock(x);
      time.start = Latest(time.start, LandedBy(time, op.imm));
      break;
    case Track::Role::kProduct:
    case Track::Role::kProductWait:
    case Track::Role::kPlain:
      break;
  }
}

/// Advances the clock to the operation that runs.
void CatchUp(BlockState& x) { x.launch->schedule ? IssuePending(x) : PassTime(x, x.timing.op); }

}  // namespace

TimingTable TimingsOf(const Launch& launch) {
  TimingTable table;
  const Kernel& kernel = *launch.kernel;
  table.marks.resize(kernel.ops.size());
  if (launch.schedule) {
    table.marks = PartBeginnings(*launch.schedule);
    return table;
  }
  const Latencies& latencies = launch.latencies;
  Busy busy;
  for (const Track& track : kernel.tracks) {
    const OpCost& cost = track.cost;
    const bool ahead = track.load_words > 0 || track.leads;
    const bool plain = track.role == Track::Role::kPlain && cost.wait != Wait::kRounded && !ahead;
    table.timings.push_back(
        {cost.steps * double{latencies.step} + latencies.wait[static_cast<size_t>(cost.wait)],
         track.first, track.live, track.reads, track.writes, plain});
    table.busy.push_back(busy);
    const auto uses = [&](Pipe pipe) {
      return static_cast<double>(cost.uses[static_cast<size_t>(pipe)]);
    };
    busy.slots += cost.issue;
    busy.alu += uses(Pipe::kAlu) * latencies.alu_busy;
    busy.special += uses(Pipe::kSfu) * latencies.special_busy;
    busy.tensor += uses(Pipe::kTensor) * latencies.tensor_busy;
  }
  table.busy.push_back(busy);
  return table;
}

namespace {
/// Cycles for which an access occupies the load/store unit: its wavefronts, but at least the cycles
/// in which the unit takes a warp's lanes.
uint32_t LoadStoreCycles(const BlockState& x, const Touch& touch) {
  return touch.wavefronts == 0 ? 0 : std::max(touch.wavefronts, x.launch->latencies.memory_turns);
}
}  // namespace

void Advance(BlockState& x, const Op& op, uint32_t pc, bool active) {
  if (x.launch->schedule) return NoteOperation(x, op, pc, active);
  WarpTime& time = x.timing.warps[x.warp->index];
  const Touch touch = std::exchange(x.timing.touch, {});
  Occupy(time, x.launch->timing, pc, pc + 1);
  time.memory += LoadStoreCycles(x, touch);
  if (active || op.flow == Flow::kBranch) PassOne(x, pc, touch);
}

void Note(BlockState& x, uint32_t pc, bool active) {
  if (x.launch->schedule) return NoteOperation(x, x.kernel->ops[pc], pc, active);
  x.timing.noted.push_back({pc, active, std::exchange(x.timing.touch, {})});
}

void PassTime(BlockState& x, uint32_t end) {
  if (x.launch->schedule || x.timing.next >= end) return;
  const TimingTable& table = x.launch->timing;
  WarpTime& time = x.timing.warps[x.warp->index];
  uint32_t pc = x.timing.next;
  uint32_t occupied = pc;
  const auto pass_to = [&](uint32_t to) {
    while ((pc = PassPlain(x, time, pc, to)) < to) {
      Occupy(time, table, std::exchange(occupied, pc + 1), pc + 1);
      PassOne(x, pc++, {});
    }
  };
  for (const Noted& noted : x.timing.noted) {
    pass_to(noted.pc);
    Occupy(time, table, std::exchange(occupied, pc + 1), pc + 1);
    time.memory += LoadStoreCycles(x, noted.touch);
    if (noted.active) PassOne(x, pc, noted.touch);
    ++pc;
  }
  pass_to(end);
  Occupy(time, table, occupied, end);
  x.timing.noted.clear();
  x.timing.next = end;
}

void EndBasicBlock(BlockState& x, double gap) {
  if (x.launch->schedule) return IssuePending(x);
  WarpTime& time = x.timing.warps[x.warp->index];
  time.start = Later(Latest(Later(time.start, time.Busy()), time.issued), gap);
  time.issued = time.start;
  time.slots = time.alu = time.special = time.tensor = time.memory = 0;
  time.position_count = time.oldest = 0;
}

void SynchroniseWarps(BlockState& x, const std::vector<uint32_t>& waiting) {
  const Latencies& latencies = x.launch->latencies;
  Moment last{};
  for (uint32_t index : waiting) last = Latest(last, x.timing.warps[index].start);
  last = Later(
      last, latencies.barrier + latencies.barrier_per_warp * static_cast<double>(waiting.size()));
  for (uint32_t index : waiting) x.timing.warps[index].start = x.timing.warps[index].issued = last;
}

void SynchroniseCluster(CoScheduledBlocks& peers) {
  const BlockState& first = *peers.members.front();
  const Latencies& latencies = first.launch->latencies;
  Moment last{};
  for (const BlockState* member : peers.members) last = Latest(last, EndOfBlock(*member));
  last = Later(last, latencies.cluster_barrier + latencies.cluster_barrier_per_warp *
                                                     static_cast<double>(first.warps.size()));
  for (BlockState* member : peers.members) {
    for (WarpTime& time : member->timing.warps) time.start = time.issued = last;
  }
}

void NoteArrival(BlockState& x, const void* barrier, const Moment& latency) {
  CatchUp(x);
  const WarpTime& time = x.timing.warps[x.warp->index];
  Moment& arrived = x.peers->arrivals[barrier];
  const Moment now = Latest(Later(time.start, time.Busy()), time.issued);
  arrived = Latest(arrived, {now[0] + latency[0], now[1] + latency[1]});
}

void NoteTransfer(BlockState& x, const void* barrier, uint32_t bytes) {
  const Latencies& latencies = x.launch->latencies;
  CatchUp(x);
  const WarpTime& time = x.timing.warps[x.warp->index];
  const Moment now = Latest(Later(time.start, time.Busy()), time.issued);
  const Moment through = x.timing.ports.l2.Take(now, bytes / double{latencies.port_bytes_per_clk});
  const auto latency = [&](size_t run) {
    return through[run] - now[run] + latencies.miss[x.timing.read_before ? 0 : run] +
           latencies.bulk;
  };
  NoteArrival(x, barrier, {latency(0), latency(1)});
}

void NoteWaited(BlockState& x, const void* barrier) {
  CatchUp(x);
  EndBasicBlock(x);
  WarpTime& time = x.timing.warps[x.warp->index];
  time.start = Latest(time.start, x.peers->arrivals[barrier]);
  time.issued = time.start;
}

Moment EndOfBlock(const BlockState& x) {
  Moment end{};
  for (const WarpTime& time : x.timing.warps)
    end = Latest(end, Latest(Later(time.start, time.Busy()), time.issued));
  return end;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
