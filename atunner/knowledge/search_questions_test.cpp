// Questions with known pages: the right one must be among the first three for nine of ten.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "atunner/knowledge/document_index.h"

namespace atunner::knowledge {
namespace {

struct Case {
  const char* question;
  const char* page;
};
constexpr Case kCases[] = {
    {"shared memory bank conflicts", "bank-conflicts"},
    {"column access of a 32x32 tile is slow", "bank-conflicts"},
    {"pad rows or swizzle shared memory", "bank-conflicts"},
    {"uncoalesced global loads", "coalescing"},
    {"strided access wastes sectors", "coalescing"},
    {"how to transpose with coalesced loads", "coalescing"},
    {"float4 vectorized loads", "vector-loads"},
    {"wider loads and stores", "vector-loads"},
    {"how large should tiles in shared memory be", "shared-memory-tiles"},
    {"each thread computes 8 x 8 results in registers", "register-tiles"},
    {"occupancy is low because of registers", "occupancy"},
    {"resident warps hide latency", "occupancy"},
    {"Little's law bytes in flight", "bytes-in-flight"},
    {"warps wait for long latency loads and nothing is busy", "bytes-in-flight"},
    {"cp.async stages pipeline", "software-pipelining"},
    {"asynchronous copy global to shared", "software-pipelining"},
    {"tensor map TMA copy", "software-pipelining"},
    {"mma.sync or wgmma", "tensor-cores"},
    {"tensor cores TF32 precision", "tensor-cores"},
    {"reduce a warp with shuffles", "warp-reductions"},
    {"__shfl_xor_sync sum", "warp-reductions"},
    {"split-K partial sums", "split-k"},
    {"few result tiles and a long inner axis", "split-k"},
    {"stream-k", "split-k"},
    {"wave quantization last wave nearly empty", "last-wave"},
    {"number of blocks just above a wave", "last-wave"},
    {"persistent kernel loops over tiles", "persistent-kernels"},
    {"register spills to local memory", "register-spills"},
    {"launch bounds spill", "register-spills"},
    {"pragma unroll factor", "unrolling"},
    {"instruction cache too large loop body", "unrolling"},
    {"branch divergence in a warp", "divergence"},
    {"few active threads per instruction", "divergence"},
    {"fast exponentials exp2f", "special-functions"},
    {"reciprocal square root special function", "special-functions"},
    {"order of blocks for L2 hits", "l2-locality"},
    {"swizzled tile order grouped rows", "l2-locality"},
    {"fuse pointwise operations into the epilogue", "kernel-fusion"},
    {"chain of memory-bound kernels", "kernel-fusion"},
    {"launch overhead CUDA graphs", "launch-overhead"},
    {"programmatic dependent launch", "launch-overhead"},
    {"online softmax single pass", "online-softmax"},
    {"softmax of a row with maximum and sum", "online-softmax"},
    {"which block size", "block-size"},
    {"threads per block multiple of 32", "block-size"},
    {"thread block clusters distributed shared memory", "clusters"},
    {"multicast a tile to several blocks", "clusters"},
    {"roofline arithmetic intensity", "roofline"},
    {"is my kernel memory bound or compute bound", "roofline"},
    {"ridge point peak bandwidth", "roofline"},
    {"const __restrict__ pointers and the read-only cache", "read-only-loads"},
    {"__constant__ table indexed uniformly by a warp", "constant-memory"},
    {"more than 48 KiB of shared memory", "l1-carveout"},
    {"keep weights resident in L2 persisting accesses", "l2-persistence"},
    {"evict first cache hints for outputs", "streaming-stores"},
    {"misaligned address error", "alignment"},
    {"array of structures or structure of arrays", "structure-of-arrays"},
    {"transpose a matrix", "transpose"},
    {"embedding lookup gather rows by index", "gather-scatter"},
    {"atomicAdd contention on one address", "atomics"},
    {"histogram with few bins", "histogram"},
    {"prefix sum decoupled look-back", "prefix-sum"},
    {"reduce a whole block and the grid", "block-reductions"},
    {"__syncthreads stalls barrier", "barriers"},
    {"independent thread scheduling __syncwarp", "warp-synchrony"},
    {"grid.sync cooperative launch", "cooperative-groups"},
    {"run small kernels concurrently in streams", "streams"},
    {"pinned memory copies from host", "host-transfers"},
    {"cudaMallocAsync pool", "memory-pools"},
    {"half2 arithmetic in float16", "half-precision"},
    {"FP8 E4M3 scaling", "fp8"},
    {"4-bit quantised weights unpack", "integer-quantisation"},
    {"modulo and division by unknown integer", "integer-division"},
    {"64-bit index arithmetic costs", "index-arithmetic"},
    {"contraction of multiply and add rounding", "fused-multiply-add"},
    {"compensated summation error of long sums", "accurate-sums"},
    {"layer normalisation mean and variance in one pass", "layer-normalisation"},
    {"flash attention without score matrix", "flash-attention"},
    {"implicit convolution im2col winograd", "convolution"},
    {"stencil halo tile", "stencils"},
    {"sparse matrix vector product rows of different length", "sparse-products"},
    {"one block has much more work than others", "load-balance"},
    {"producer and consumer warps", "warp-specialisation"},
    {"tensor map encode TMA box", "tensor-memory-accelerator"},
    {"ldmatrix trans", "ldmatrix"},
    {"__launch_bounds__ minimum blocks", "launch-bounds"},
    {"several independent accumulators hide latency", "instruction-level-parallelism"},
    {"template parameters for sizes NVRTC", "compile-time-sizes"},
    {"predicates for tiles at the edge", "boundary-checks"},
    {"how to time a kernel correctly with events", "measuring-time"},
    {"GPU clock throttles power limit", "power-and-clocks"},
    {"sanitizer race out of bounds", "correctness-first"},
    {"decode one query key value cache pages", "paged-and-batched-decoding"},
    {"grouped gemm mixture of experts", "grouped-products"},
    {"top-k selection of a row", "sorting-and-top-k"},
    {"philox random numbers dropout", "random-numbers"},
    {"recompute activations instead of storing", "recomputation"},
};

TEST(Questions, FindTheirPages) {
  const auto index = DocumentIndex::Open("").value();
  int right = 0;
  std::string missed;
  for (const Case& one : kCases) {
    const auto found = index->Search(one.question, 3).value();
    const bool hit = std::ranges::any_of(found, [&](const Found& each) {
      return each.document == std::string("handbook/") + one.page;
    });
    right += hit ? 1 : 0;
    if (!hit) missed += std::string(one.question) + "\n";
  }
  EXPECT_GE(right, static_cast<int>(0.9 * static_cast<double>(std::size(kCases)))) << missed;
  RecordProperty("right", right);
}

}  // namespace
}  // namespace atunner::knowledge
