// The track of each operation, which the timeline uses.
#include <algorithm>
#include <cstdio>

#include "atunner/vgpu/analysis/predication.h"
#include "atunner/vgpu/state/block_state.h"
#include "atunner/vgpu/state/warp_clock.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Instruction;
using ptx::Operand;

/// True for opcodes whose first operand is a source.
bool FirstIsSource(const Instruction& instruction) {
  static constexpr std::string_view kOpcodes[] = {"bar",        "barrier",   "bra", "brx", "call",
                                                  "setmaxnreg", "nanosleep", "st",  "red"};
  return std::ranges::find(kOpcodes, instruction.opcode) != std::end(kOpcodes) &&
         !instruction.Has("red");
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
  if (instruction.opcode == "wgmma" && instruction.Has("wait_group"))
    return Track::Role::kProductWait;
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
      return m * n * k *
             static_cast<uint32_t>(ptx::BitsOf(ptx::ParseType(instruction.modifiers.back()))) / 16;
  }
  return 0;
}

}  // namespace

Track TrackOf(const Instruction& instruction, uint32_t first, std::vector<int32_t>& list) {
  Track track;
  track.cost = CostOf(instruction);
  track.role = RoleOf(instruction);
  if (track.role == Track::Role::kProduct) track.products = ProductsOf(instruction);
  track.store = instruction.opcode == "st" || instruction.opcode == "red" ||
                instruction.opcode == "stmatrix";
  track.meets = instruction.opcode == "mbarrier" ||
                (instruction.opcode == "cp" && instruction.Has("bulk"));
  track.unordered = instruction.opcode == "ld" &&
                    (instruction.Has("nc") || instruction.Has("const"));
  track.streams = instruction.opcode == "ld" && instruction.Has("cs");
  track.constant = instruction.opcode == "cvta" ||
                   (instruction.opcode == "ld" && instruction.Has("param"));
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
    Bits reads;   ///< slots that the block reads before it writes them
    Bits writes;  ///< slots that the block writes for all lanes
    Bits live_in;
  };
  Bits None() const { return Bits((words_.size() + kWord - 1) / kWord); }
  static bool Has(const Bits& bits, size_t slot) {
    return (bits[slot / kWord] >> slot % kWord & 1) != 0;
  }

  /// Removes slots that hold only parameters and their addresses: these are in the constant bank.
  void DropConstants() {
    std::vector<bool> written(words_.size(), false);
    std::vector<bool> varies(words_.size(), false);
    for (const Track& track : kernel_.tracks) {
      for (int i = 0; i < track.writes; ++i) {
        const auto slot = static_cast<size_t>(
            kernel_.track_list[track.first + track.reads + static_cast<uint32_t>(i)]);
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
      const bool leaves = last.guard < 0 &&
                          (last.flow == Flow::kBranch || last.flow == Flow::kBranchIndexed ||
                           last.flow == Flow::kExit || last.flow == Flow::kReturn);
      if (!leaves && block.end < n) block.next.push_back(block_of[block.end]);
    }
  }

  static bool Ends(const Op& op) {
    return op.flow == Flow::kBranch || op.flow == Flow::kBranchIndexed || op.flow == Flow::kExit ||
           op.flow == Flow::kReturn;
  }

  /// Calls f(slot, is_read) for the accesses of an operation to slots that count, in reverse order.
  template <class F>
  void ForSlots(uint32_t op, F&& f) const {
    const Track& track = kernel_.tracks[op];
    const int32_t* slots = kernel_.track_list.data() + track.first;
    const auto visit = [&](int k, bool read) {
      const auto slot = static_cast<size_t>(slots[k]);
      if (needed_[slot]) f(slot, read);
    };
    for (int w = track.reads; kernel_.ops[op].guard < 0 && w < track.reads + track.writes; ++w)
      visit(w, false);
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

  /// Propagates liveness from a block's end to its beginning; true if that changed.
  bool Pass(Block& block) const {
    Bits live = LiveAfter(block);
    for (size_t i = 0; i < live.size(); ++i)
      live[i] = block.reads[i] | (live[i] & ~block.writes[i]);
    if (live == block.live_in) return false;
    block.live_in = std::move(live);
    return true;
  }

  /// Writes Track::live.
  void Note(const Block& block) {
    Bits live = LiveAfter(block);
    uint32_t words = 0;
    for (size_t slot = 0; slot < words_.size(); ++slot)
      words += Has(live, slot) ? words_[slot] : 0u;
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

/// Fills Track::leads: marks the arithmetic that computes the addresses of loads, back to the begin
/// of the basic block.
void MarkLeads(Kernel& kernel, size_t registers) {
  std::vector<bool> wanted(registers, false);
  const std::vector<int32_t>& list = kernel.track_list;
  for (size_t i = kernel.ops.size(); i-- > 0;) {
    Track& track = kernel.tracks[i];
    const Flow flow = kernel.ops[i].flow;
    if (flow != Flow::kNone && flow != Flow::kCollective && !track.predicated)
      wanted.assign(registers, false);
    const auto slot = [&](int k) {
      return static_cast<size_t>(list[track.first + static_cast<uint32_t>(k)]);
    };
    bool useful = track.load_words > 0;
    for (int w = track.reads; w < track.reads + track.writes; ++w) {
      useful = useful || wanted[slot(w)];
      wanted[slot(w)] = false;
    }
    track.leads = useful && track.load_words == 0 && track.cost.wait != Wait::kMemory &&
                  !track.store;
    for (int r = 0; useful && r < track.reads; ++r) wanted[slot(r)] = true;
  }
}

}  // namespace

void MarkLive(Kernel& kernel, const std::vector<uint8_t>& words) {
  if (kernel.ops.empty()) return;
  ConvertBranches(kernel);
  for (size_t i = 0; i < kernel.ops.size(); ++i) {
    Track& track = kernel.tracks[i];
    // Loads of shared memory have a short latency and are not moved ahead.
    if (track.cost.wait != Wait::kMemory || track.store || kernel.ops[i].space == Space::kShared)
      continue;
    const int32_t* slots = kernel.track_list.data() + track.first + track.reads;
    for (int w = 0; w < track.writes; ++w)
      track.load_words = static_cast<uint16_t>(track.load_words +
                                               words[static_cast<size_t>(slots[w])]);
  }
  MarkLeads(kernel, words.size());
  Liveness(kernel, words).Run();
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
