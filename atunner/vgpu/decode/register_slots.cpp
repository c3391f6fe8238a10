#include "atunner/vgpu/decode/register_slots.h"

#include <algorithm>
#include <array>
#include <bit>
#include <queue>

#include "atunner/vgpu/analysis/body_flow.h"

namespace atunner::vgpu {
namespace {

/// A set of registers.
class Bits {
 public:
  explicit Bits(size_t registers) : words_((registers + 63) / 64, 0) {}
  void Set(int reg, bool value) {
    const uint64_t bit = uint64_t{1} << (reg % 64);
    uint64_t& word = words_[static_cast<size_t>(reg) / 64];
    word = value ? word | bit : word & ~bit;
  }
  void Add(const Bits& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  template <class F>
  void ForEach(F&& f) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t m = words_[i]; m != 0; m &= m - 1)
        f(static_cast<int>(64 * i) + std::countr_zero(m));
    }
  }
  bool operator==(const Bits&) const = default;

 private:
  std::vector<uint64_t> words_;
};

/// Instructions, in the order of the text, from the first to the last at which a register is in
/// use.
struct Interval {
  size_t first = SIZE_MAX;
  size_t last = 0;
  bool alone = false;
  void Cover(size_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};

class Intervals {
 public:
  explicit Intervals(const ptx::Function& function)
      : function_(function), blocks_(BlocksOf(function)), intervals_(function.registers.size()) {
    uses_ = UsesOf(function);
    FindLive();
    for (size_t i = 0; i < uses_.size(); ++i) {
      const auto cover = [&](int reg) {
        Interval& interval = intervals_[static_cast<size_t>(reg)];
        interval.Cover(i);
        interval.alone |= function.body[i].opcode == "wgmma";
      };
      if (function.body[i].guard >= 0) cover(function.body[i].guard);
      for (const auto* registers : {&uses_[i].writes, &uses_[i].addresses, &uses_[i].values})
        std::ranges::for_each(*registers, cover);
    }
  }
  const std::vector<Interval>& Take() const { return intervals_; }

 private:
  Bits LiveBefore(const BasicBlock& block, Bits live) const {
    for (size_t i = block.end; i-- > block.first;) {
      const int guard = function_.body[i].guard;
      if (guard < 0) {  // else the old value may stay
        for (int reg : uses_[i].writes) live.Set(reg, false);
      } else {
        live.Set(guard, true);
      }
      for (int reg : uses_[i].addresses) live.Set(reg, true);
      for (int reg : uses_[i].values) live.Set(reg, true);
    }
    return live;
  }

  void FindLive() {
    const size_t registers = intervals_.size();
    std::vector<Bits> before(blocks_.size(), Bits(registers));
    const auto after = [&](const BasicBlock& block) {
      Bits live(registers);
      for (size_t next : block.next) live.Add(before[next]);
      return live;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = blocks_.size(); b-- > 0;) {
        Bits live = LiveBefore(blocks_[b], after(blocks_[b]));
        changed |= live != before[b];
        before[b] = std::move(live);
      }
    }
    for (size_t b = 0; b < blocks_.size(); ++b) {
      before[b].ForEach(
          [&](int reg) { intervals_[static_cast<size_t>(reg)].Cover(blocks_[b].first); });
      after(blocks_[b]).ForEach([&](int reg) {
        intervals_[static_cast<size_t>(reg)].Cover(blocks_[b].end - 1);
      });
    }
    if (blocks_.empty()) return;
    before[0].ForEach([&](int reg) { intervals_[static_cast<size_t>(reg)].alone = true; });
  }

  const ptx::Function& function_;
  std::vector<BasicBlock> blocks_;
  std::vector<Use> uses_;
  std::vector<Interval> intervals_;
};

/// Registers of different widths store their lanes differently, and lanes diverge: only registers
/// of one kind can share a slot.
enum class Kind : uint8_t { kPredicate, kSingle, kDouble, kQuadruple };
Kind KindOf(ptx::Type type) {
  const int bits = ptx::BitsOf(type);
  return bits == 1     ? Kind::kPredicate
         : bits == 64  ? Kind::kDouble
         : bits == 128 ? Kind::kQuadruple
                       : Kind::kSingle;
}

}  // namespace

uint32_t SlotsOfType(ptx::Type type) {
  const Kind kind = KindOf(type);
  return kind == Kind::kQuadruple ? 4 : kind == Kind::kDouble ? 2 : 1;
}

RegisterSlots AssignSlots(const ptx::Function& function, int32_t first, bool share) {
  RegisterSlots slots{std::vector<int32_t>(function.registers.size()), first};
  const auto take = [&](size_t reg) {
    const int32_t slot = slots.end;
    slots.end += static_cast<int32_t>(SlotsOfType(function.registers[reg].type));
    return slot;
  };
  if (!share) {
    for (size_t reg = 0; reg < slots.first.size(); ++reg) slots.first[reg] = take(reg);
    return slots;
  }
  const Intervals all(function);
  const std::vector<Interval>& intervals = all.Take();
  std::vector<size_t> order(intervals.size());
  for (size_t reg = 0; reg < order.size(); ++reg) order[reg] = reg;
  std::ranges::stable_sort(order, {}, [&](size_t reg) { return intervals[reg].first; });
  using Ending = std::pair<size_t, int32_t>;  // last instruction, slot
  std::array<std::priority_queue<Ending, std::vector<Ending>, std::greater<>>, 4> in_use;
  std::array<std::vector<int32_t>, 4> free;
  for (size_t reg : order) {
    const Interval& interval = intervals[reg];
    const auto kind = static_cast<size_t>(KindOf(function.registers[reg].type));
    for (auto& ending = in_use[kind]; !ending.empty() && ending.top().first < interval.first;
         ending.pop())
      free[kind].push_back(ending.top().second);
    int32_t& slot = slots.first[reg];
    if (interval.alone || free[kind].empty()) {
      slot = take(reg);
    } else {
      slot = free[kind].back();
      free[kind].pop_back();
    }
    if (!interval.alone && interval.first != SIZE_MAX) in_use[kind].emplace(interval.last, slot);
  }
  return slots;
}

}  // namespace atunner::vgpu
