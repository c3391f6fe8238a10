#include "atunner/knowledge/handbook.h"

#include <algorithm>

#include "embed/handbook.h"

namespace atunner::knowledge {
namespace {

constexpr Page kPages[] = {
    {"bank-conflicts", embed::kBankConflictsMd},
    {"block-size", embed::kBlockSizeMd},
    {"bytes-in-flight", embed::kBytesInFlightMd},
    {"clusters", embed::kClustersMd},
    {"coalescing", embed::kCoalescingMd},
    {"divergence", embed::kDivergenceMd},
    {"kernel-fusion", embed::kKernelFusionMd},
    {"l2-locality", embed::kL2LocalityMd},
    {"last-wave", embed::kLastWaveMd},
    {"launch-overhead", embed::kLaunchOverheadMd},
    {"occupancy", embed::kOccupancyMd},
    {"online-softmax", embed::kOnlineSoftmaxMd},
    {"persistent-kernels", embed::kPersistentKernelsMd},
    {"register-spills", embed::kRegisterSpillsMd},
    {"register-tiles", embed::kRegisterTilesMd},
    {"roofline", embed::kRooflineMd},
    {"shared-memory-tiles", embed::kSharedMemoryTilesMd},
    {"software-pipelining", embed::kSoftwarePipeliningMd},
    {"special-functions", embed::kSpecialFunctionsMd},
    {"split-k", embed::kSplitKMd},
    {"tensor-cores", embed::kTensorCoresMd},
    {"unrolling", embed::kUnrollingMd},
    {"vector-loads", embed::kVectorLoadsMd},
    {"warp-reductions", embed::kWarpReductionsMd},
};

}  // namespace

std::span<const Page> Handbook() { return kPages; }

const Page* FindPage(std::string_view name) {
  const auto found = std::ranges::find(kPages, name, &Page::name);
  return found == std::end(kPages) ? nullptr : found;
}

}  // namespace atunner::knowledge
