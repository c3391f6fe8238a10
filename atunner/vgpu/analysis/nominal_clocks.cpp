#include "atunner/vgpu/analysis/nominal_clocks.h"

#include <algorithm>

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// Clocks of an access that finds its data in L2, in shared memory, or is only sent off.
uint32_t AccessClocks(const Track& track, Space space) {
  constexpr uint32_t kLevel2 = 280, kShared = 30, kSent = 10;
  if (track.store) return kSent;
  return space == Space::kShared ? kShared : kLevel2;
}

/// Clocks of one operation; the latencies are those of Hopper (docs/timing-model.md), rounded.
uint32_t ClocksOf(const Op& op, const Track& track) {
  constexpr uint32_t kReading = 8;  // of %clock, on an H100
  if (op.flow == Flow::kReadsTime) return kReading;
  const OpCost& cost = track.cost;
  uint32_t clocks = 4 * cost.steps + 2 * cost.issue + (op.flow == Flow::kBranch ? 12u : 0u);
  switch (cost.wait) {
    case Wait::kMemory:
      return clocks + AccessClocks(track, op.space);
    case Wait::kFence:
      return clocks + 300;
    case Wait::kRounded:
      return clocks + 30;
    case Wait::kSpecial:
    case Wait::kFp64:
    case Wait::kShuffle:
      return clocks + 20;
    case Wait::kTensor:
      return clocks + 33;
    default:
      return std::max(clocks, 2u);
  }
}

}  // namespace

void FillNominalClocks(Kernel& kernel) {
  const bool reads = std::ranges::any_of(kernel.ops,
                                         [](const Op& op) { return op.flow == Flow::kReadsTime; });
  if (!reads) return;
  kernel.clocks.assign(kernel.ops.size() + 1, 0);
  for (size_t i = 0; i < kernel.ops.size(); ++i)
    kernel.clocks[i + 1] = kernel.clocks[i] + ClocksOf(kernel.ops[i], kernel.tracks[i]);
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
