#include "atunner/vgpu/analysis/predication.h"

#include <algorithm>

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

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
      if (kernel_.ops[i].flow != Flow::kNone || entered_[i] > (i == first ? entries : 0))
        return false;
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

}  // namespace

void ConvertBranches(Kernel& kernel) { Predication(kernel).Run(); }

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
