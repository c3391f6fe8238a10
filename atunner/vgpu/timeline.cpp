#include "atunner/vgpu/timeline.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "atunner/vgpu/in_order.h"
#include "atunner/vgpu/internal.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Operand;

/// Opcodes whose first register is no result.
bool FirstIsSource(const Instruction& instruction) {
  static constexpr std::string_view kOpcodes[] = {"bar",        "barrier",   "bra", "brx", "call",
                                                  "setmaxnreg", "nanosleep", "st",  "red"};
  return std::ranges::find(kOpcodes, instruction.opcode) != std::end(kOpcodes) && !instruction.Has("red");
}

template <class F>
void ForRegisters(const Operand& operand, F&& f) {
  if (operand.kind == Operand::Kind::kVector) {
    for (const Operand& element : operand.elements) ForRegisters(element, f);
  } else if (operand.reg >= 0) {
    f(operand.reg);
  }
  if (operand.second) f(*operand.second);
}

Track::Role RoleOf(const Instruction& instruction) {
  if (instruction.opcode == "wgmma" && instruction.Has("mma_async")) return Track::Role::kProduct;
  if (instruction.opcode == "wgmma" && instruction.Has("wait_group")) return Track::Role::kProductWait;
  if (instruction.opcode != "cp" || !instruction.Has("async") || instruction.Has("mbarrier"))
    return Track::Role::kPlain;
  if (instruction.Has("commit_group")) return Track::Role::kAsyncCommit;
  if (instruction.Has("wait_group") || instruction.Has("wait_all")) return Track::Role::kAsyncWait;
  return instruction.Has("bulk") ? Track::Role::kPlain : Track::Role::kAsyncCopy;
}

/// Multiply-adds of a wgmma, "m64n128k16", as elements of 16 bits.
uint32_t ProductsOf(const Instruction& instruction) {
  for (const std::string& modifier : instruction.modifiers) {
    unsigned m = 0, n = 0, k = 0;
    if (std::sscanf(modifier.c_str(), "m%un%uk%u", &m, &n, &k) == 3)
      return m * n * k * static_cast<uint32_t>(ptx::BitsOf(ptx::ParseType(instruction.modifiers.back()))) / 16;
  }
  return 0;
}

Moment Later(const Moment& moment, double cycles) { return {moment[0] + cycles, moment[1] + cycles}; }

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

Moment DoneWith(Exec& x, const Touch& touch, const Moment& at) {
  const Latencies& latencies = x.launch->latencies;
  Moment begin = at;
  if (touch.level == Touch::Level::kRemote)
    begin = x.ports.cluster.Take(at, double{latencies.remote_busy} * touch.wavefronts);
  if (touch.copied > 0) begin = x.ports.l2.Take(at, touch.copied / double{latencies.port_bytes_per_clk});
  const Moment access = MemoryLatency(latencies, touch);
  return {begin[0] + access[0], begin[1] + access[1]};
}

namespace {

constexpr size_t kLookahead = 20;  // operations by which the assembler moves arithmetic ahead

/// A load issues no earlier than the place from which the registers of all loads on the way fit beside what is live.
Moment EarliestLoad(const Launch& launch, WarpTime& time, const Track& track) {
  constexpr int64_t kLeast = 12;
  const uint32_t words = time.places[time.placed - 1].load_words + track.load_words;
  const auto fits = [&](const WarpTime::Place& place) {
    const int64_t room = std::max<int64_t>(kLeast, int64_t{launch.registers} - place.live);
    return int64_t{words} - place.load_words <= room;
  };
  while (time.oldest + 1 < time.placed && !fits(time.places[time.oldest])) ++time.oldest;
  return time.places[time.oldest].issued;
}

/// The operations from `first` up to `end` take their turns.
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

}  // namespace

Track TrackOf(const Instruction& instruction, uint32_t first, std::vector<int32_t>& list) {
  Track track;
  track.cost = CostOf(instruction);
  track.role = RoleOf(instruction);
  if (track.role == Track::Role::kProduct) track.products = ProductsOf(instruction);
  track.store = instruction.opcode == "st" || instruction.opcode == "red" || instruction.opcode == "stmatrix";
  track.meets = instruction.opcode == "mbarrier" || (instruction.opcode == "cp" && instruction.Has("bulk"));
  track.unordered = instruction.opcode == "ld" && (instruction.Has("nc") || instruction.Has("const"));
  track.constant = instruction.opcode == "cvta" || (instruction.opcode == "ld" && instruction.Has("param"));
  track.first = static_cast<uint32_t>(list.size());
  std::vector<int32_t> written;
  const auto number = [&](int reg) { return static_cast<int32_t>(first) + reg; };
  if (instruction.guard >= 0) list.push_back(number(instruction.guard));
  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    const Operand& operand = instruction.operands[i];
    const bool address = operand.kind == Operand::Kind::kAddress;
    if (address && operand.reg >= 0 && track.base < 0) track.base = number(operand.reg);
    const bool result = i == 0 && !address && !FirstIsSource(instruction);
    ForRegisters(operand, [&](int reg) { (result ? written : list).push_back(number(reg)); });
  }
  track.reads = static_cast<uint8_t>(std::min<size_t>(list.size() - track.first, 255));
  list.resize(track.first + track.reads);
  track.writes = static_cast<uint8_t>(std::min<size_t>(written.size(), 255));
  list.insert(list.end(), written.begin(), written.begin() + track.writes);
  return track;
}

// ---- registers in use
// ------------------------------------------------------------------------------------------------
namespace {

/// Backward data flow over the operations of a kernel, block by block, one bit per slot.
class Liveness {
 public:
  Liveness(Kernel& kernel, const std::vector<uint8_t>& words) : kernel_(kernel), words_(words) {
    for (size_t slot = 0; slot < words_.size(); ++slot) needed_.push_back(words_[slot] > 0);
    DropConstants();
    FindBlocks();
    for (Block& block : blocks_) Summarise(block);
  }

  void Run() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t b = blocks_.size(); b-- > 0;) changed |= Pass(blocks_[b]);
    }
    for (const Block& block : blocks_) Note(block);
  }

 private:
  static constexpr size_t kWord = 64;
  using Bits = std::vector<uint64_t>;
  struct Block {
    uint32_t first = 0, end = 0;
    std::vector<size_t> next;
    Bits reads;   ///< before it writes them
    Bits writes;  ///< for all lanes
    Bits live_in;
  };
  Bits None() const { return Bits((words_.size() + kWord - 1) / kWord); }
  static bool Has(const Bits& bits, size_t slot) { return (bits[slot / kWord] >> slot % kWord & 1) != 0; }

  /// Slots that nothing but parameters and their addresses are written to live in the constant bank.
  void DropConstants() {
    std::vector<bool> written(words_.size(), false);
    std::vector<bool> varies(words_.size(), false);
    for (const Track& track : kernel_.tracks) {
      for (int i = 0; i < track.writes; ++i) {
        const auto slot = static_cast<size_t>(kernel_.track_list[track.first + track.reads + static_cast<uint32_t>(i)]);
        written[slot] = true;
        varies[slot] = varies[slot] || !track.constant;
      }
    }
    for (size_t slot = 0; slot < words_.size(); ++slot) {
      if (written[slot] && !varies[slot]) needed_[slot] = false;
    }
  }

  void FindBlocks() {
    const size_t n = kernel_.ops.size();
    std::vector<bool> leads(n + 1, false);
    leads[0] = leads[n] = true;
    const auto targets = [&](const Op& op, auto&& f) {
      if (op.flow == Flow::kBranch) f(op.target);
      for (uint64_t i = 0; op.flow == Flow::kBranchIndexed && i < op.imm; ++i)
        f(static_cast<uint32_t>(kernel_.lists[op.list + i]));
    };
    for (size_t i = 0; i < n; ++i) {
      targets(kernel_.ops[i], [&](uint32_t target) { leads[target] = true; });
      if (Ends(kernel_.ops[i])) leads[i + 1] = true;
    }
    std::vector<size_t> block_of(n + 1, 0);
    for (size_t i = 0; i < n; ++i) {
      if (leads[i]) blocks_.push_back({static_cast<uint32_t>(i), 0, {}, None(), None(), None()});
      block_of[i] = blocks_.size() - 1;
      blocks_.back().end = static_cast<uint32_t>(i + 1);
    }
    for (Block& block : blocks_) {
      const Op& last = kernel_.ops[block.end - 1];
      targets(last, [&](uint32_t target) {
        if (target < n) block.next.push_back(block_of[target]);
      });
      const bool leaves = last.guard < 0 && (last.flow == Flow::kBranch || last.flow == Flow::kBranchIndexed ||
                                             last.flow == Flow::kExit || last.flow == Flow::kReturn);
      if (!leaves && block.end < n) block.next.push_back(block_of[block.end]);
    }
  }

  static bool Ends(const Op& op) {
    return op.flow == Flow::kBranch || op.flow == Flow::kBranchIndexed || op.flow == Flow::kExit ||
           op.flow == Flow::kReturn;
  }

  /// Calls f(slot, whether it is read) for what an operation does to slots that count, in the order of going back.
  template <class F>
  void ForSlots(uint32_t op, F&& f) const {
    const Track& track = kernel_.tracks[op];
    const int32_t* slots = kernel_.track_list.data() + track.first;
    const auto visit = [&](int k, bool read) {
      const auto slot = static_cast<size_t>(slots[k]);
      if (needed_[slot]) f(slot, read);
    };
    for (int w = track.reads; kernel_.ops[op].guard < 0 && w < track.reads + track.writes; ++w) visit(w, false);
    for (int r = 0; r < track.reads; ++r) visit(r, true);
  }

  void Summarise(Block& block) const {
    for (uint32_t i = block.end; i-- > block.first;) {
      ForSlots(i, [&](size_t slot, bool read) {
        const uint64_t bit = uint64_t{1} << slot % kWord;
        uint64_t& reads = block.reads[slot / kWord];
        reads = read ? reads | bit : reads & ~bit;
        if (!read) block.writes[slot / kWord] |= bit;
      });
    }
  }

  Bits LiveAfter(const Block& block) const {
    Bits live = None();
    for (const size_t next : block.next) {
      for (size_t i = 0; i < live.size(); ++i) live[i] |= blocks_[next].live_in[i];
    }
    return live;
  }

  /// From a block's end to its beginning; whether its beginning changed.
  bool Pass(Block& block) const {
    Bits live = LiveAfter(block);
    for (size_t i = 0; i < live.size(); ++i) live[i] = block.reads[i] | (live[i] & ~block.writes[i]);
    if (live == block.live_in) return false;
    block.live_in = std::move(live);
    return true;
  }

  /// Writes Track::live.
  void Note(const Block& block) {
    Bits live = LiveAfter(block);
    uint32_t words = 0;
    for (size_t slot = 0; slot < words_.size(); ++slot) words += Has(live, slot) ? words_[slot] : 0u;
    for (uint32_t i = block.end; i-- > block.first;) {
      ForSlots(i, [&](size_t slot, bool read) {
        if (Has(live, slot) == read) return;
        live[slot / kWord] ^= uint64_t{1} << slot % kWord;
        words = read ? words + words_[slot] : words - words_[slot];
      });
      kernel_.tracks[i].live = static_cast<uint16_t>(std::min(words, 0xffffu));
    }
  }

  Kernel& kernel_;
  const std::vector<uint8_t>& words_;
  std::vector<bool> needed_;
  std::vector<Block> blocks_;
};

}  // namespace

// ---- branches that become predicates --------------------------------------------------------------------------------
namespace {

/// Forward branches over a few instructions, and the two short ways of an if with an else: the assembler lets all lanes
/// run them under a predicate, so that nothing waits for a branch and what follows may move ahead of it. How many are
/// few was read off what ptxas 13.0 makes of bodies of 1 to 24 instructions for sm_90.
class Predication {
 public:
  explicit Predication(Kernel& kernel) : kernel_(kernel), entered_(kernel.ops.size() + 1, 0) {
    for (const Op& op : kernel.ops) {
      if (op.flow == Flow::kBranch) Enter(op.target);
      for (uint64_t i = 0; op.flow == Flow::kBranchIndexed && i < op.imm; ++i)
        Enter(static_cast<uint32_t>(kernel.lists[op.list + i]));
    }
  }

  void Run() {
    for (uint32_t i = 0; i < kernel_.ops.size(); ++i) {
      const Op& op = kernel_.ops[i];
      if (op.flow != Flow::kBranch || op.guard < 0 || op.target <= i) continue;
      const uint32_t last = op.target - 1;
      const Op& end = kernel_.ops[last];
      if (IsShort(i + 1, op.target, kMost)) {
        Convert(i, i + 1, op.target);
      } else if (last > i && end.flow == Flow::kBranch && end.guard < 0 && end.target > op.target &&
                 entered_[op.target] == 1 && IsShort(i + 1, last, kMostOfTwoWays) &&
                 IsShort(op.target, end.target, kMostOfTwoWays, 1)) {
        Convert(i, i + 1, last);
        Convert(i, op.target, end.target);
        Drop(last);
      }
    }
  }

 private:
  static constexpr int kMost = 6;
  static constexpr int kMostOfTwoWays = 5;  ///< each
  static constexpr int kMostWithLoads = 20;

  void Enter(uint32_t target) {
    if (target < entered_.size()) ++entered_[target];
  }

  /// `entries`: branches that may lead to the first operation.
  bool IsShort(uint32_t first, uint32_t end, int most, uint32_t entries = 0) const {
    if (end > kernel_.ops.size()) return false;
    int instructions = 0;
    for (uint32_t i = first; i < end; ++i) {
      const Track& track = kernel_.tracks[i];
      if (kernel_.ops[i].flow != Flow::kNone || entered_[i] > (i == first ? entries : 0)) return false;
      if (track.cost.wait == Wait::kRounded) return false;
      if (track.cost.wait == Wait::kMemory && !track.store) most = kMostWithLoads;
      instructions += track.cost.issue;
    }
    return instructions <= most;
  }

  /// The operations from `first` to `end` wait for the branch's predicate instead of the branch.
  void Convert(uint32_t branch, uint32_t first, uint32_t end) {
    const Track& condition = kernel_.tracks[branch];
    if (condition.reads == 0) return;
    const int32_t guard = kernel_.track_list[condition.first];
    std::vector<int32_t>& list = kernel_.track_list;
    for (uint32_t i = first; i < end; ++i) {
      Track& track = kernel_.tracks[i];
      if (track.reads == 255) continue;
      const auto at = static_cast<uint32_t>(list.size());
      list.push_back(guard);
      for (uint32_t k = 0; k < uint32_t{track.reads} + track.writes; ++k) {
        const int32_t slot = list[track.first + k];
        list.push_back(slot);
      }
      track.first = at;
      ++track.reads;
    }
    Drop(branch);
  }

  void Drop(uint32_t branch) {
    kernel_.tracks[branch].predicated = true;
    kernel_.tracks[branch].cost = {};
  }

  Kernel& kernel_;
  std::vector<uint32_t> entered_;  ///< per operation: branches that lead to it
};

/// Fills Track::leads: what the addresses of loads are made of, from the loads back to where the flow changes.
void MarkLeads(Kernel& kernel, size_t registers) {
  std::vector<bool> wanted(registers, false);
  const std::vector<int32_t>& list = kernel.track_list;
  for (size_t i = kernel.ops.size(); i-- > 0;) {
    Track& track = kernel.tracks[i];
    const Flow flow = kernel.ops[i].flow;
    if (flow != Flow::kNone && flow != Flow::kCollective && !track.predicated) wanted.assign(registers, false);
    const auto slot = [&](int k) { return static_cast<size_t>(list[track.first + static_cast<uint32_t>(k)]); };
    bool useful = track.load_words > 0;
    for (int w = track.reads; w < track.reads + track.writes; ++w) {
      useful = useful || wanted[slot(w)];
      wanted[slot(w)] = false;
    }
    track.leads = useful && track.load_words == 0 && track.cost.wait != Wait::kMemory && !track.store;
    for (int r = 0; useful && r < track.reads; ++r) wanted[slot(r)] = true;
  }
}

}  // namespace

void MarkLive(Kernel& kernel, const std::vector<uint8_t>& words) {
  if (kernel.ops.empty()) return;
  Predication(kernel).Run();
  for (size_t i = 0; i < kernel.ops.size(); ++i) {
    Track& track = kernel.tracks[i];
    // Shared memory is near: its loads stay with the arithmetic.
    if (track.cost.wait != Wait::kMemory || track.store || kernel.ops[i].space == Space::kShared) continue;
    const int32_t* slots = kernel.track_list.data() + track.first + track.reads;
    for (int w = 0; w < track.writes; ++w)
      track.load_words = static_cast<uint16_t>(track.load_words + words[static_cast<size_t>(slots[w])]);
  }
  MarkLeads(kernel, words.size());
  Liveness(kernel, words).Run();
}

// ---- time -----------------------------------------------------------------------------------------------------------
namespace {

__m128d Load(const Moment& moment) { return _mm_loadu_pd(moment.data()); }
void Store(Moment& to, __m128d moment) { _mm_storeu_pd(to.data(), moment); }

/// Plain operations from `pc` on that met no memory, up to `end`. Returns the first that is none.
uint32_t PassPlain(const Exec& x, WarpTime& time, uint32_t pc, uint32_t end) {
  const Timing* timings = x.launch->timing.timings.data();
  const int32_t* list = x.kernel->track_list.data();
  Moment* ready = time.ready.data();
  if (pc == end || !timings[pc].plain) return pc;
  if (time.placed == 0) time.NotePlace({time.start, 0, timings[pc].live});
  const __m128d start = Load(time.start);
  __m128d issued = Load(time.issued);
  WarpTime::Place place = time.places[time.placed - 1];
  for (; pc < end && timings[pc].plain; ++pc) {
    const Timing& timing = timings[pc];
    const int32_t* slots = list + timing.first;
    __m128d at = start;
    if (time.placed > kLookahead) at = _mm_max_pd(at, Load(time.places[time.placed - kLookahead].issued));
    for (int i = 0; i < timing.reads; ++i) at = _mm_max_pd(at, Load(ready[slots[i]]));
    issued = _mm_max_pd(issued, at);
    const __m128d done = _mm_add_pd(at, _mm_set1_pd(timing.latency));
    for (int i = 0; i < timing.writes; ++i) Store(ready[slots[timing.reads + i]], done);
    Store(place.issued, issued);
    place.live = timing.live;
    time.NotePlace(place);
  }
  Store(time.issued, issued);
  return pc;
}

/// When the operation issues.
Moment IssueOf(const Exec& x, WarpTime& time, const Op& op, const Track& track, const Touch& touch) {
  const int32_t* slots = x.kernel->track_list.data() + track.first;
  Moment at = time.start;
  const bool ahead = track.load_words > 0 || track.leads;
  if (ahead && x.launch->registers > 0) at = Latest(at, EarliestLoad(*x.launch, time, track));
  if (!ahead && time.placed > kLookahead) at = Latest(at, time.places[time.placed - kLookahead].issued);
  for (int i = 0; i < track.reads; ++i) at = Latest(at, time.ready[static_cast<size_t>(slots[i])]);
  const bool shared = touch.level == Touch::Level::kShared;
  if (touch.level != Touch::Level::kNone && !track.unordered)
    at = AfterStores(shared ? time.shared_stores : time.global_stores, op.src[0] < 0 ? op.src[0] : track.base, at,
                     track.store);
  if (op.flow == Flow::kBranch && op.guard >= 0 && !track.predicated) at = Later(at, x.launch->latencies.predicate);
  return at;
}

/// One operation of any kind; what it keeps busy is counted already.
void PassOne(Exec& x, uint32_t pc, const Touch& touch) {
  const Op& op = x.kernel->ops[pc];
  const Track& track = x.kernel->tracks[pc];
  WarpTime& time = x.times[x.warp->index];
  if (time.placed == 0) time.NotePlace({time.start, 0, track.live});
  const Moment at = IssueOf(x, time, op, track, touch);
  time.issued = Latest(time.issued, at);
  const double latency = x.launch->timing.timings[pc].latency;
  const Moment done = Later(DoneWith(x, touch, at), latency);
  const int32_t* results = x.kernel->track_list.data() + track.first + track.reads;
  for (int i = 0; i < track.writes; ++i) time.ready[static_cast<size_t>(results[i])] = done;
  time.NotePlace({time.issued, time.places[time.placed - 1].load_words + track.load_words, track.live});
  if (track.cost.wait == Wait::kRounded) {  // runs alone
    time.issued = Latest(Later(time.start, time.Busy()), done);
    EndStretch(x);
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
      EndStretch(x);
      time.start = Latest(time.start, LandedBy(time, op.imm));
      break;
    case Track::Role::kProduct:
    case Track::Role::kProductWait:
    case Track::Role::kPlain:
      break;
  }
}

/// The clock comes to the operation that runs.
void CatchUp(Exec& x) { x.launch->schedule ? IssuePending(x) : PassTime(x, x.place); }

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
    table.timings.push_back({cost.steps * double{latencies.step} + latencies.wait[static_cast<size_t>(cost.wait)],
                             track.first, track.live, track.reads, track.writes, plain});
    table.busy.push_back(busy);
    const auto uses = [&](Pipe pipe) { return static_cast<double>(cost.uses[static_cast<size_t>(pipe)]); };
    busy.slots += cost.issue;
    busy.alu += uses(Pipe::kAlu) * latencies.alu_busy;
    busy.special += uses(Pipe::kSfu) * latencies.special_busy;
    busy.tensor += uses(Pipe::kTensor) * latencies.tensor_busy;
  }
  table.busy.push_back(busy);
  return table;
}

void Advance(Exec& x, const Op& op, uint32_t pc, bool active) {
  if (x.launch->schedule) return NoteOperation(x, op, pc, active);
  WarpTime& time = x.times[x.warp->index];
  const Touch touch = std::exchange(x.touch, {});
  Occupy(time, x.launch->timing, pc, pc + 1);
  time.memory += touch.wavefronts;
  if (active || op.flow == Flow::kBranch) PassOne(x, pc, touch);
}

void Note(Exec& x, uint32_t pc, bool active) {
  if (x.launch->schedule) return NoteOperation(x, x.kernel->ops[pc], pc, active);
  x.noted.push_back({pc, active, std::exchange(x.touch, {})});
}

void PassTime(Exec& x, uint32_t end) {
  if (x.launch->schedule || x.timed_from >= end) return;
  const TimingTable& table = x.launch->timing;
  WarpTime& time = x.times[x.warp->index];
  uint32_t pc = x.timed_from;
  uint32_t occupied = pc;
  const auto pass_to = [&](uint32_t to) {
    while ((pc = PassPlain(x, time, pc, to)) < to) {
      Occupy(time, table, std::exchange(occupied, pc + 1), pc + 1);
      PassOne(x, pc++, {});
    }
  };
  for (const Noted& noted : x.noted) {
    pass_to(noted.pc);
    Occupy(time, table, std::exchange(occupied, pc + 1), pc + 1);
    time.memory += noted.touch.wavefronts;
    if (noted.active) PassOne(x, pc, noted.touch);
    ++pc;
  }
  pass_to(end);
  Occupy(time, table, occupied, end);
  x.noted.clear();
  x.timed_from = end;
}

void EndStretch(Exec& x, double gap) {
  if (x.launch->schedule) return IssuePending(x);
  WarpTime& time = x.times[x.warp->index];
  time.start = Later(Latest(Later(time.start, time.Busy()), time.issued), gap);
  time.issued = time.start;
  time.slots = time.alu = time.special = time.tensor = time.memory = 0;
  time.placed = time.oldest = 0;
}

void Meet(Exec& x, const std::vector<uint32_t>& waiting) {
  const Latencies& latencies = x.launch->latencies;
  Moment last{};
  for (uint32_t index : waiting) last = Latest(last, x.times[index].start);
  last = Later(last, latencies.barrier + latencies.barrier_per_warp * static_cast<double>(waiting.size()));
  for (uint32_t index : waiting) x.times[index].start = x.times[index].issued = last;
}

void MeetCluster(Gang& gang) {
  const Exec& first = *gang.members.front();
  const Latencies& latencies = first.launch->latencies;
  Moment last{};
  for (const Exec* member : gang.members) last = Latest(last, EndOfBlock(*member));
  last = Later(
      last, latencies.cluster_barrier + latencies.cluster_barrier_per_warp * static_cast<double>(first.warps.size()));
  for (Exec* member : gang.members) {
    for (WarpTime& time : member->times) time.start = time.issued = last;
  }
}

void NoteArrival(Exec& x, const void* place, const Moment& latency) {
  CatchUp(x);
  const WarpTime& time = x.times[x.warp->index];
  Moment& arrived = x.gang->arrivals[place];
  const Moment now = Latest(Later(time.start, time.Busy()), time.issued);
  arrived = Latest(arrived, {now[0] + latency[0], now[1] + latency[1]});
}

void NoteTransfer(Exec& x, const void* place, uint32_t bytes) {
  const Latencies& latencies = x.launch->latencies;
  CatchUp(x);
  const WarpTime& time = x.times[x.warp->index];
  const Moment now = Latest(Later(time.start, time.Busy()), time.issued);
  const Moment through = x.ports.l2.Take(now, bytes / double{latencies.port_bytes_per_clk});
  const auto latency = [&](size_t run) { return through[run] - now[run] + latencies.miss[run] + latencies.bulk; };
  NoteArrival(x, place, {latency(0), latency(1)});
}

void NoteWaited(Exec& x, const void* place) {
  CatchUp(x);
  EndStretch(x);
  WarpTime& time = x.times[x.warp->index];
  time.start = Latest(time.start, x.gang->arrivals[place]);
  time.issued = time.start;
}

Moment EndOfBlock(const Exec& x) {
  Moment end{};
  for (const WarpTime& time : x.times) end = Latest(end, Latest(Later(time.start, time.Busy()), time.issued));
  return end;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
