#include "atunner/knowledge/handbook.h"

#include <algorithm>

#include "embed/handbook.h"

namespace atunner::knowledge {
namespace {

constexpr Page kPages[] = {
    {"accurate-sums", embed::kAccurateSumsMd},
    {"alignment", embed::kAlignmentMd},
    {"atomics", embed::kAtomicsMd},
    {"bank-conflicts", embed::kBankConflictsMd},
    {"barriers", embed::kBarriersMd},
    {"block-reductions", embed::kBlockReductionsMd},
    {"block-size", embed::kBlockSizeMd},
    {"boundary-checks", embed::kBoundaryChecksMd},
    {"bytes-in-flight", embed::kBytesInFlightMd},
    {"clusters", embed::kClustersMd},
    {"coalescing", embed::kCoalescingMd},
    {"compile-time-sizes", embed::kCompileTimeSizesMd},
    {"constant-memory", embed::kConstantMemoryMd},
    {"convolution", embed::kConvolutionMd},
    {"cooperative-groups", embed::kCooperativeGroupsMd},
    {"correctness-first", embed::kCorrectnessFirstMd},
    {"divergence", embed::kDivergenceMd},
    {"flash-attention", embed::kFlashAttentionMd},
    {"fp8", embed::kFp8Md},
    {"fused-multiply-add", embed::kFusedMultiplyAddMd},
    {"gather-scatter", embed::kGatherScatterMd},
    {"grouped-products", embed::kGroupedProductsMd},
    {"half-precision", embed::kHalfPrecisionMd},
    {"histogram", embed::kHistogramMd},
    {"host-transfers", embed::kHostTransfersMd},
    {"index-arithmetic", embed::kIndexArithmeticMd},
    {"instruction-level-parallelism", embed::kInstructionLevelParallelismMd},
    {"integer-division", embed::kIntegerDivisionMd},
    {"integer-quantisation", embed::kIntegerQuantisationMd},
    {"kernel-fusion", embed::kKernelFusionMd},
    {"l1-carveout", embed::kL1CarveoutMd},
    {"l2-locality", embed::kL2LocalityMd},
    {"l2-persistence", embed::kL2PersistenceMd},
    {"last-wave", embed::kLastWaveMd},
    {"launch-bounds", embed::kLaunchBoundsMd},
    {"launch-overhead", embed::kLaunchOverheadMd},
    {"layer-normalisation", embed::kLayerNormalisationMd},
    {"ldmatrix", embed::kLdmatrixMd},
    {"load-balance", embed::kLoadBalanceMd},
    {"measuring-time", embed::kMeasuringTimeMd},
    {"memory-pools", embed::kMemoryPoolsMd},
    {"occupancy", embed::kOccupancyMd},
    {"online-softmax", embed::kOnlineSoftmaxMd},
    {"paged-and-batched-decoding", embed::kPagedAndBatchedDecodingMd},
    {"persistent-kernels", embed::kPersistentKernelsMd},
    {"power-and-clocks", embed::kPowerAndClocksMd},
    {"prefix-sum", embed::kPrefixSumMd},
    {"random-numbers", embed::kRandomNumbersMd},
    {"read-only-loads", embed::kReadOnlyLoadsMd},
    {"recomputation", embed::kRecomputationMd},
    {"register-spills", embed::kRegisterSpillsMd},
    {"register-tiles", embed::kRegisterTilesMd},
    {"roofline", embed::kRooflineMd},
    {"shared-memory-tiles", embed::kSharedMemoryTilesMd},
    {"software-pipelining", embed::kSoftwarePipeliningMd},
    {"sorting-and-top-k", embed::kSortingAndTopKMd},
    {"sparse-products", embed::kSparseProductsMd},
    {"special-functions", embed::kSpecialFunctionsMd},
    {"split-k", embed::kSplitKMd},
    {"stencils", embed::kStencilsMd},
    {"streaming-stores", embed::kStreamingStoresMd},
    {"streams", embed::kStreamsMd},
    {"structure-of-arrays", embed::kStructureOfArraysMd},
    {"tensor-cores", embed::kTensorCoresMd},
    {"tensor-memory-accelerator", embed::kTensorMemoryAcceleratorMd},
    {"transpose", embed::kTransposeMd},
    {"unrolling", embed::kUnrollingMd},
    {"vector-loads", embed::kVectorLoadsMd},
    {"warp-reductions", embed::kWarpReductionsMd},
    {"warp-specialisation", embed::kWarpSpecialisationMd},
    {"warp-synchrony", embed::kWarpSynchronyMd},
};

}  // namespace

std::span<const Page> Handbook() { return kPages; }

const Page* FindPage(std::string_view name) {
  const auto found = std::ranges::find(kPages, name, &Page::name);
  return found == std::end(kPages) ? nullptr : found;
}

}  // namespace atunner::knowledge
