// Correct kernels, tricky ones among them: no report may come. Launched as bugs.cu is, with x all ones.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <mma.h>

#define KERNEL extern "C" __global__ void
typedef const float* In;
typedef float* Out;
namespace cg = cooperative_groups;
__device__ unsigned address_of(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void wait_parity(unsigned b, int parity) {
  asm volatile("{\n .reg .pred p;\n WAIT:\n mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n @p bra DONE;\n bra WAIT;\n DONE:\n}" ::"r"(b), "r"(parity) : "memory");
}

KERNEL barrier_between(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}
KERNEL warp_synchronous(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x ^ 1];
}
KERNEL warp_tree(In x, Out y) {
  __shared__ volatile float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  for (int o = 16; o; o >>= 1) {
    __syncwarp();
    float v = s[threadIdx.x ^ o];
    __syncwarp();
    s[threadIdx.x] += v;
  }
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x];
}
KERNEL block_tree(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int o = 32; o > 0; o >>= 1) {
    if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];
    __syncthreads();
  }
  y[threadIdx.x] = s[0];
}
KERNEL block_tree_then_warp(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) {
    float v = s[threadIdx.x] + s[threadIdx.x + 32];
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(~0u, v, o);
    if (threadIdx.x == 0) s[0] = v;
  }
  __syncthreads();
  y[threadIdx.x] = s[0];
}
KERNEL atomics_only(In x, Out y) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  atomicAdd(&n, 1);
  __syncthreads();
  y[threadIdx.x] = n;
}
KERNEL atomic_of_all_kinds(In x, Out y) {
  __shared__ unsigned n[8];
  if (threadIdx.x < 8) n[threadIdx.x] = 0;
  __syncthreads();
  atomicMax(n + 1, threadIdx.x), atomicMin(n + 2, threadIdx.x), atomicOr(n + 3, 1u << threadIdx.x % 32);
  atomicXor(n + 4, threadIdx.x), atomicInc(n + 5, 40), atomicExch(n + 6, threadIdx.x), atomicCAS(n + 7, 0, threadIdx.x);
  __syncthreads();
  y[threadIdx.x] = n[threadIdx.x % 8];
}
KERNEL histogram(In x, Out y) {
  __shared__ int bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(bins + (threadIdx.x * 7 + (int)x[threadIdx.x]) % 16, 1);
  __syncthreads();
  y[threadIdx.x] = bins[threadIdx.x % 16];
}
KERNEL early_exit(In x, Out y) {
  if (threadIdx.x > 40) return;
  y[threadIdx.x] = x[threadIdx.x];
}
KERNEL whole_warp_exits_before_barrier(In x, Out y) {
  __shared__ float s[64];
  if (threadIdx.x >= 32) return;
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[31 - threadIdx.x];
}
KERNEL same_value_by_all(In x, Out y) {
  __shared__ int flag;
  flag = 7;
  __syncthreads();
  y[threadIdx.x] = flag + x[0];
}
KERNEL named_barrier(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  asm volatile("bar.sync 3, 64;" ::: "memory");
  y[threadIdx.x] = s[63 - threadIdx.x];
}
KERNEL barriers_of_single_warps(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  asm volatile("bar.sync %0, 32;" ::"r"(1 + threadIdx.x / 32) : "memory");
  y[threadIdx.x] = s[threadIdx.x ^ 31];
}
KERNEL producer_consumer_barriers(In x, Out y) {
  __shared__ float s[32];
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x < 32) {
      s[threadIdx.x] = x[threadIdx.x] + i;
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      if (blockIdx.x == 0) y[threadIdx.x] = s[63 - threadIdx.x];
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
}
KERNEL barrier_reductions(In x, Out y) {
  y[threadIdx.x] = __syncthreads_count(threadIdx.x < 10) + __syncthreads_or(threadIdx.x == 3) + __syncthreads_and(x[0] > 0);
}
KERNEL diverged_then_met(In x, Out y) {
  __shared__ float s[64];
  float v = threadIdx.x & 1 ? x[threadIdx.x] * 2 : x[threadIdx.x] + 1;
  if (threadIdx.x % 3 == 0) v += 1;
  v += __shfl_xor_sync(~0u, v, 1);
  s[threadIdx.x] = v;
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}
KERNEL uneven_loops(In x, Out y) {
  float v = 0;
  for (int i = 0; i < threadIdx.x; ++i) v += x[i];
  __syncthreads();
  y[threadIdx.x] = v;
}
KERNEL bytes_of_one_word(In x, Out y) {
  __shared__ unsigned char s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x] + x[0];
}
KERNEL halves_of_one_word(In x, Out y) {
  __shared__ __half s[64];
  s[threadIdx.x] = __float2half(x[threadIdx.x]);
  __syncthreads();
  __half2 v = *(__half2*)(s + (threadIdx.x & ~1));
  y[threadIdx.x] = __half2float(__hadd(v.x, v.y));
}
KERNEL double_buffer(In x, Out y) {
  __shared__ float s[2][64];
  s[0][threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int i = 0; i < 5; ++i) {
    s[(i + 1) & 1][threadIdx.x] = s[i & 1][(threadIdx.x + 1) & 63];
    __syncthreads();
  }
  y[threadIdx.x] = s[1][threadIdx.x];
}
KERNEL transpose_padded(In x, Out y) {
  __shared__ float s[8][9];
  s[threadIdx.x / 8][threadIdx.x % 8] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x % 8][threadIdx.x / 8];
}
KERNEL ballot_and_match(In x, Out y) {
  y[threadIdx.x] = __popc(__ballot_sync(~0u, threadIdx.x & 1)) + __popc(__match_any_sync(~0u, threadIdx.x & 3)) + x[0];
}
KERNEL match_all(In x, Out y) {
  int same;
  unsigned m = __match_all_sync(~0u, threadIdx.x / 32, &same);
  y[threadIdx.x] = __popc(m) + same + x[0];
}
KERNEL warp_reduce_instructions(In x, Out y) {
  y[threadIdx.x] = __reduce_add_sync(~0u, threadIdx.x) + __reduce_max_sync(~0u, (int)x[threadIdx.x]) + __reduce_or_sync(~0u, 1u);
}
KERNEL half_warp_shuffle(In x, Out y) {
  float v = x[threadIdx.x];
  if (threadIdx.x % 32 < 16) v += __shfl_down_sync(0xffffu, v, 8, 16);
  y[threadIdx.x] = v;
}
KERNEL shuffle_by_active_mask(In x, Out y) {
  if (threadIdx.x % 3 == 0) {
    unsigned m = __activemask();
    y[threadIdx.x] = __shfl_sync(m, x[threadIdx.x], __ffs(m) - 1);
  }
}
KERNEL warp_aggregated_atomic(In x, Out y) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  if (threadIdx.x % 5 < 3) {
    cg::coalesced_group g = cg::coalesced_threads();
    int first = 0;
    if (g.thread_rank() == 0) first = atomicAdd(&n, g.size());
    y[g.shfl(first, 0) + g.thread_rank()] = x[threadIdx.x];
  }
}
KERNEL tiles(In x, Out y) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  float v = x[threadIdx.x];
  for (int o = 4; o; o >>= 1) v += tile.shfl_xor(v, o);
  tile.sync();
  y[threadIdx.x] = v + cg::reduce(tile, v, cg::plus<float>());
}
KERNEL spin_lock(In x, Out y) {
  __shared__ int lock, n;
  if (threadIdx.x == 0) lock = n = 0;
  __syncthreads();
  bool done = false;
  while (!done) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      __threadfence_block();
      n = n + 1;
      __threadfence_block();
      atomicExch(&lock, 0);
      done = true;
    }
  }
  __syncthreads();
  y[threadIdx.x] = n + x[0];
}
KERNEL flag_between_warps(In x, Out y) {
  __shared__ volatile int ready;
  __shared__ float s[32];
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    s[threadIdx.x] = x[threadIdx.x];
    __syncwarp();
    __threadfence_block();
    if (threadIdx.x == 0) ready = 1;
  } else {
    while (ready == 0) {
    }
    __threadfence_block();
    y[threadIdx.x] = s[threadIdx.x - 32];
  }
}
KERNEL flag_within_a_warp(In x, Out y) {
  __shared__ volatile int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 7) {
    ready = 1;
  } else {
    while (ready == 0) {
    }
  }
  y[threadIdx.x] = x[0];
}
KERNEL last_block_sums(In x, Out y) {
  __shared__ bool last;
  static __device__ unsigned done = 0;
  static __device__ float part[2];
  if (threadIdx.x == 0) {
    part[blockIdx.x] = x[0] + blockIdx.x;
    __threadfence();
    last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) y[threadIdx.x] = *(volatile float*)&part[0] + *(volatile float*)&part[1];
}
KERNEL look_back(In x, Out y) {
  static __device__ volatile int state[2];
  if (threadIdx.x == 0) {
    if (blockIdx.x > 0) {
      while (state[blockIdx.x - 1] == 0) {
      }
    }
    __threadfence();
    state[blockIdx.x] = 1;
  }
  __syncthreads();
  y[threadIdx.x] = x[0];
}
KERNEL local_array(In x, Out y) {
  float a[16];
  for (int i = 0; i < 16; ++i) a[i] = x[(threadIdx.x + i) & 63];
  float v = 0;
  for (int i = 0; i < 16; ++i) v += a[(i * 7 + threadIdx.x) & 15];
  y[threadIdx.x] = v;
}
KERNEL prints(In x, Out y) {
  if (threadIdx.x == 0) printf("%d %s %5.2f\n", (int)x[0], "text", 2.5);
  y[threadIdx.x] = 1;
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KERNEL recursion(In x, Out y) { y[threadIdx.x] = fibonacci(threadIdx.x % 9) + x[0]; }
struct Shape {
  __device__ virtual float area() const = 0;
};
struct Square : Shape {
  float a;
  __device__ float area() const override { return a * a; }
};
struct Circle : Shape {
  float r;
  __device__ float area() const override { return 3 * r * r; }
};
KERNEL virtual_functions(In x, Out y) {
  Square square;
  Circle circle;
  square.a = x[0] + threadIdx.x, circle.r = threadIdx.x;
  const Shape* shape = threadIdx.x % 2 ? (const Shape*)&square : (const Shape*)&circle;
  y[threadIdx.x] = shape->area();
}
__device__ __noinline__ float twice(float v) { return v * 2; }
__device__ __noinline__ float thrice(float v) { return v * 3; }
__device__ float (*const table[2])(float) = {twice, thrice};
KERNEL function_table(In x, Out y) { y[threadIdx.x] = table[threadIdx.x % 2](x[threadIdx.x]); }
__device__ __noinline__ float sum_with_barrier(float v) {
  __shared__ float s[64];
  s[threadIdx.x] = v;
  __syncthreads();
  float r = s[threadIdx.x ^ 63];
  __syncthreads();
  return r;
}
KERNEL barrier_in_a_function(In x, Out y) { y[threadIdx.x] = sum_with_barrier(x[threadIdx.x]) + sum_with_barrier(1); }
KERNEL big_switch(In x, Out y) {
  float v = x[threadIdx.x];
  switch (threadIdx.x % 8) {
    case 0: v += 1; break;
    case 1: v *= 3; break;
    case 2: v -= 7; break;
    case 3: v = v * v + 1; break;
    case 4: v = -v; break;
    case 5: v = sqrtf(v + 3); break;
    case 6: v = v / 3; break;
    default: v = 9;
  }
  __syncwarp();
  y[threadIdx.x] = v;
}
KERNEL device_malloc(In x, Out y) {
  float* p = (float*)malloc(16);
  if (p == nullptr) return;
  p[3] = x[threadIdx.x];
  y[threadIdx.x] = p[3];
  free(p);
}
KERNEL async_pipeline(In x, Out y) {
  __shared__ __align__(16) float s[2][64];
  float v = 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s[0] + threadIdx.x)), "l"(x + threadIdx.x) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int i = 0; i < 4; ++i) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s[(i + 1) & 1] + threadIdx.x)), "l"(x + threadIdx.x) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    v += s[i & 1][63 - threadIdx.x];
    __syncthreads();
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  y[threadIdx.x] = v;
}
KERNEL mbarrier_phases(In x, Out y) {
  __shared__ unsigned long long b;
  __shared__ float s[64];
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(address_of(&b)) : "memory");
  __syncthreads();
  float v = x[threadIdx.x];
  for (int i = 0; i < 6; ++i) {
    s[threadIdx.x] = v;
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&b)) : "memory");
    wait_parity(address_of(&b), (2 * i) & 1);
    v = s[63 - threadIdx.x] + 1;
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&b)) : "memory");
    wait_parity(address_of(&b), (2 * i + 1) & 1);
  }
  y[threadIdx.x] = v;
}
KERNEL mbarrier_producer_consumer(In x, Out y) {
  __shared__ unsigned long long full[2], empty[2];
  __shared__ float s[2][32];
  if (threadIdx.x < 2) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(address_of(full + threadIdx.x)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(address_of(empty + threadIdx.x)) : "memory");
  }
  __syncthreads();
  float v = 0;
  for (int i = 0; i < 8; ++i) {
    const int slot = i & 1, phase = (i >> 1) & 1;
    if (threadIdx.x < 32) {
      wait_parity(address_of(empty + slot), phase ^ 1);
      s[slot][threadIdx.x] = x[threadIdx.x] + i;
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(full + slot)) : "memory");
    } else {
      wait_parity(address_of(full + slot), phase);
      v += s[slot][63 - threadIdx.x];
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(empty + slot)) : "memory");
    }
  }
  y[threadIdx.x] = v;
}
KERNEL bulk_copy(In x, Out y) {
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long b;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&b)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(address_of(&b)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(address_of(s)), "l"(x), "r"(address_of(&b)) : "memory");
  }
  wait_parity(address_of(&b), 0);
  float v = s[63 - threadIdx.x];
  __syncthreads();
  s[threadIdx.x] = v * 2;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(y), "r"(address_of(s)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
KERNEL async_copy_with_mbarrier(In x, Out y) {
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long b;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(address_of(&b)) : "memory");
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s + threadIdx.x)), "l"(x + threadIdx.x) : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address_of(&b)) : "memory");
  wait_parity(address_of(&b), 0);
  y[threadIdx.x] = s[63 - threadIdx.x];
}
// -- Each block multicasts its half of a stage into both, round after round; the stage is given back to both blocks.
KERNEL __cluster_dims__(2, 1, 1) multicast_stage_given_back_to_both(In x, Out y) {
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long full, empty;
  const unsigned rank = blockIdx.x % 2;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(address_of(&empty)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive;\n barrier.cluster.wait;" ::: "memory");
  float v = 0;
  for (int round = 0; threadIdx.x == 0 && round < 4; ++round) {
    if (round > 0) wait_parity(address_of(&empty), (round - 1) % 2);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(address_of(&full)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" ::"r"(address_of(s + 32 * rank)), "l"(x + 32 * rank), "r"(address_of(&full)), "h"((short)3) : "memory");
  }
  for (int round = 0; threadIdx.x >= 32 && round < 4; ++round) {
    wait_parity(address_of(&full), round % 2);
    v += s[threadIdx.x - 32] + s[threadIdx.x];
    __syncwarp();
    if (threadIdx.x < 34)
      asm volatile("{\n .reg .b32 r;\n mapa.shared::cluster.u32 r, %0, %1;\n mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];\n}" ::"r"(address_of(&empty)), "r"(threadIdx.x - 32) : "memory");
  }
  asm volatile("barrier.cluster.arrive;\n barrier.cluster.wait;" ::: "memory");
  if (blockIdx.x == 0) y[threadIdx.x] = v;
}
KERNEL __cluster_dims__(2, 1, 1) distributed_shared(In x, Out y) {
  __shared__ float s[64];
  auto cluster = cg::this_cluster();
  s[threadIdx.x] = x[threadIdx.x] + cluster.block_rank();
  cluster.sync();
  const float* other = cluster.map_shared_rank(s, cluster.block_rank() ^ 1);
  if (cluster.block_rank() == 0) y[threadIdx.x] = other[63 - threadIdx.x];
  cluster.sync();
}
KERNEL __cluster_dims__(2, 1, 1) distributed_atomics(In x, Out y) {
  __shared__ int n;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) n = 0;
  cluster.sync();
  atomicAdd(cluster.map_shared_rank(&n, 0), 1);
  cluster.sync();
  if (cluster.block_rank() == 0) y[threadIdx.x] = n;
}
KERNEL __cluster_dims__(2, 1, 1) remote_arrival(In x, Out y) {
  __shared__ unsigned long long b;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(address_of(&b)) : "memory");
  cluster.sync();
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address_of(&b)), "r"(cluster.block_rank() ^ 1));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
  wait_parity(address_of(&b), 0);
  y[threadIdx.x] = x[0];
  cluster.sync();
}
KERNEL grid_barrier(In x, Out y) {
  static __device__ float part[2];
  if (threadIdx.x == 0) part[blockIdx.x] = x[0] + blockIdx.x;
  cg::this_grid().sync();
  y[threadIdx.x] = part[0] + part[1];
}
KERNEL matrix_load_and_product(In x, Out y) {
  __shared__ __align__(16) __half a[2][16 * 16];
  __half* mine = a[threadIdx.x / 32];
  for (int i = threadIdx.x % 32; i < 256; i += 32) mine[i] = __float2half(x[i % 64]);
  __syncwarp();
  unsigned r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address_of(mine + threadIdx.x % 16 * 16 + threadIdx.x % 32 / 16 * 8)));
  float c[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%4,%5}, {%0,%1,%2,%3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  y[threadIdx.x] = c[0];
}
KERNEL fragments_from_shared(In x, Out y) {
  using namespace nvcuda;
  __shared__ __align__(32) __half a[256];
  __shared__ __align__(32) float d[2][256];
  for (int i = threadIdx.x; i < 256; i += 64) a[i] = __float2half(x[i % 64]);
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, a, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(d[threadIdx.x / 32], fc, 16, wmma::mem_row_major);
  __syncwarp();
  y[threadIdx.x] = d[threadIdx.x / 32][threadIdx.x];
}
KERNEL matrix_store(In x, Out y) {
  __shared__ __align__(16) unsigned s[2][32];
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(address_of(s[threadIdx.x / 32]) + threadIdx.x % 8 * 16), "r"(threadIdx.x) : "memory");
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x / 32][threadIdx.x % 32] + x[0];
}
KERNEL prefix_scan(In x, Out y) {
  __shared__ float warp_sum[2];
  const int lane = threadIdx.x % 32;
  float v = x[threadIdx.x];
  for (int o = 1; o < 32; o <<= 1) {
    const float u = __shfl_up_sync(~0u, v, o);
    if (lane >= o) v += u;
  }
  if (lane == 31) warp_sum[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x >= 32) v += warp_sum[0];
  y[threadIdx.x] = v;
}
KERNEL dynamic_shared_of_two_types(In x, Out y) {
  extern __shared__ char raw[];
  float* f = (float*)raw;
  int* n = (int*)(raw + 512);
  f[threadIdx.x] = x[threadIdx.x], n[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = f[63 - threadIdx.x] + n[threadIdx.x ^ 7];
}
KERNEL generic_pointer(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = 2;
  __syncthreads();
  const float* p = threadIdx.x % 2 ? s : x;
  y[threadIdx.x] = p[63 - threadIdx.x];
}
KERNEL guarded_tail(In x, Out y) {
  for (int i = threadIdx.x * 3; i < 64; ++i) {
    if (i >= threadIdx.x * 3 + 3) break;
    y[i] = x[i];
  }
}
KERNEL elected_leader(In x, Out y) {
  unsigned leader = 0;
  asm volatile("{\n .reg .pred p;\n elect.sync _|p, 0xffffffff;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(leader));
  y[threadIdx.x] = leader + x[0];
}
KERNEL sleeping_poll(In x, Out y) {
  __shared__ volatile int n;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  if (threadIdx.x == 40) n = 1;
  while (n == 0) __nanosleep(20);
  y[threadIdx.x] = x[0];
}
KERNEL acquire_release(In x, Out y) {
  __shared__ int ready;
  __shared__ float s;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    s = x[0];
    asm volatile("st.release.cta.shared.u32 [%0], 1;" ::"r"(address_of(&ready)) : "memory");
  } else if (threadIdx.x == 32) {
    int v;
    do {
      asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(address_of(&ready)) : "memory");
    } while (v == 0);
    y[0] = s;
  }
}
KERNEL assertion_that_holds(In x, Out y) {
  if (!(x[0] > 0)) __trap();
  y[threadIdx.x] = x[0];
}
KERNEL barrier_in_uniform_loop(In x, Out y) {
  __shared__ float s[64];
  float v = x[threadIdx.x];
  for (int i = 0; i < 10; ++i) {
    s[threadIdx.x] = v;
    __syncthreads();
    v += s[(threadIdx.x + i) & 63];
    __syncthreads();
  }
  y[threadIdx.x] = v;
}
KERNEL barrier_after_a_long_loop_of_all(In x, Out y) {
  float v = 0;
  int n = 900 + (int)(x[0] * 0);
#pragma unroll 1
  for (int i = 0; i < n; ++i) v = v * 0.5f + x[i & 63];
  if (threadIdx.x < 40) {
    y[threadIdx.x] = v;
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x >= 40) y[threadIdx.x] = y[0];
}
KERNEL barrier_after_a_long_loop_of_some(In x, Out y) {
  float v = 0;
  int n = threadIdx.x < 40 ? 2000 : 1;
#pragma unroll 1
  for (int i = 0; i < n; ++i) v = v * 0.5f + x[i & 63];
  __syncthreads();
  y[threadIdx.x] = v;
}
KERNEL __cluster_dims__(2, 1, 1) remote_stores(In x, Out y) {
  __shared__ __align__(16) float s[64];
  __shared__ int n;
  __shared__ unsigned long long b;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    n = 5;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&b)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(address_of(&b)) : "memory");
  }
  cluster.sync();
  unsigned there, count, barrier;
  const unsigned other = cluster.block_rank() ^ 1;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address_of(s + threadIdx.x)), "r"(other));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(count) : "r"(address_of(&n)), "r"(other));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(address_of(&b)), "r"(other));
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(there), "f"(x[threadIdx.x] + threadIdx.x), "r"(barrier) : "memory");
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(count), "r"(1), "r"(barrier) : "memory");
  wait_parity(address_of(&b), 0);
  y[threadIdx.x] = s[threadIdx.x] + n;
  cluster.sync();
}
KERNEL vector_reductions(In x, Out y) {
  if (blockIdx.x == 0) {
    asm volatile("st.global.f32 [%0], %1;" ::"l"(y + threadIdx.x), "f"(2.0f) : "memory");
    __syncthreads();
    if (threadIdx.x < 16) {
      float a, b;
      asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %3};" ::"l"(y + 4 * threadIdx.x), "f"(x[0]), "f"(2.0f), "f"(3.0f) : "memory");
      asm volatile("atom.global.v2.f32.add {%0, %1}, [%2], {%3, %4};" : "=f"(a), "=f"(b) : "l"(y + 4 * threadIdx.x), "f"(0.5f), "f"(0.25f) : "memory");
      if (a != 3.0f || b != 4.0f) __trap();
    }
  }
}
KERNEL output_cleared_then_added(In x, Out y) {
  if (blockIdx.x > 0) return;
  y[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(y + threadIdx.x / 2, x[threadIdx.x]);
}
struct Padded {
  char tag;
  double value;
};
KERNEL padding_is_copied(In x, Out y) {
  static __device__ Padded kept[64];
  Padded p;
  p.tag = 3, p.value = x[threadIdx.x];
  kept[threadIdx.x] = p;
  __syncthreads();
  Padded q = kept[63 - threadIdx.x];
  y[threadIdx.x] = q.tag + q.value;
}
KERNEL vector_over_the_tail(In x, Out y) {
  float* p = (float*)malloc(16);
  if (p == nullptr) return;
  p[0] = x[0], p[1] = x[1], p[2] = x[2];
  asm volatile("" ::: "memory");
  float4 v = *(float4*)p;
  y[threadIdx.x] = v.x + v.y + v.z;
  free(p);
}
KERNEL best_so_far(In x, Out y) {
  float best;
  int at;
  bool have = false;
#pragma unroll 1
  for (int i = 0; i < 8; ++i) {
    const float v = x[(threadIdx.x + i) & 63] * (i + 1);
    if (v > 3 && (!have || v > best)) best = v, at = i, have = true;
  }
  y[threadIdx.x] = have ? best + at : 0;
}
KERNEL variable_set_where_needed(In x, Out y) {
  float v;
  if (threadIdx.x < 40) v = x[threadIdx.x] * 3;
  __syncwarp();
  float w = x[63 - threadIdx.x];
  if (threadIdx.x < 40) w += v;
  y[threadIdx.x] = w;
}
KERNEL shuffled_from_some(In x, Out y) {
  float v;
  if (threadIdx.x % 32 < 4) v = x[threadIdx.x];
  y[threadIdx.x] = __shfl_sync(~0u, v, threadIdx.x % 4);
}
KERNEL last_block_reads_plainly(In x, Out y) {
  static __device__ float part[2][64];
  static __device__ unsigned done;
  __shared__ bool last;
  part[blockIdx.x][threadIdx.x] = x[threadIdx.x] + 1 + blockIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (last) y[threadIdx.x] = part[0][63 - threadIdx.x] + part[1][threadIdx.x];
}
KERNEL look_back_sums(In x, Out y) {
  static __device__ volatile int state[2];
  static __device__ float sum[2];
  if (threadIdx.x == 0) {
    float before = 0;
    if (blockIdx.x > 0) {
      while (state[blockIdx.x - 1] == 0) {
      }
      __threadfence();
      before = sum[blockIdx.x - 1];
    }
    sum[blockIdx.x] = before + x[0] + 3;
    __threadfence();
    state[blockIdx.x] = 1;
  }
}
KERNEL lock_of_the_device(In x, Out y) {
  static __device__ int lock;
  static __device__ float total;
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence();
    total = total + x[0] * 2;
    __threadfence();
    atomicExch(&lock, 0);
  }
}
KERNEL ticket_order(In x, Out y) {
  static __device__ int next, serving;
  static __device__ float log[64];
  if (threadIdx.x == 0) {
    const int mine = atomicAdd(&next, 1);
    while (*(volatile int*)&serving != mine) {
    }
    __threadfence();
    log[mine + 1] = log[mine] + x[0] + 1;
    __threadfence();
    *(volatile int*)&serving = mine + 1;
  }
}
KERNEL release_and_acquire_of_the_device(In x, Out y) {
  static __device__ float data[64];
  static __device__ int ready;
  if (blockIdx.x == 0) {
    data[threadIdx.x] = x[threadIdx.x] + 7;
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(&ready) : "memory");
  } else {
    int v;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(&ready) : "memory");
    } while (v == 0);
    y[threadIdx.x] = data[63 - threadIdx.x];
  }
}
KERNEL grid_phases(In x, Out y) {
  static __device__ float a[128], b[128];
  const int i = blockIdx.x * 64 + threadIdx.x;
  a[i] = x[threadIdx.x] + i;
  for (int step = 0; step < 3; ++step) {
    cg::this_grid().sync();
    b[i] = a[(i + 1) % 128] + a[(i + 127) % 128];
    cg::this_grid().sync();
    a[i] = b[127 - i] * 0.5f;
  }
}
KERNEL __cluster_dims__(2, 1, 1) cluster_phases(In x, Out y) {
  static __device__ float a[128];
  const int i = blockIdx.x * 64 + threadIdx.x;
  a[i] = x[threadIdx.x] + i;
  cg::this_cluster().sync();
  const float v = a[127 - i];
  cg::this_cluster().sync();
  a[i] = v + 1;
}
KERNEL same_flag_by_all_blocks(In x, Out y) {
  static __device__ int changed;
  if (x[threadIdx.x] > 0) changed = 1;
}
KERNEL visited_by_atomics(In x, Out y) {
  static __device__ int visited[64], order;
  const int i = threadIdx.x;
  if (visited[i] == 0 && atomicCAS(visited + i, 0, 1 + (int)blockIdx.x) == 0) atomicAdd(&order, 1);
}
KERNEL transposed_through_global(In x, Out y) {
  static __device__ float t[2][64];
  t[blockIdx.x][threadIdx.x] = x[threadIdx.x] + threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = t[blockIdx.x][threadIdx.x % 8 * 8 + threadIdx.x / 8];
}
KERNEL halves_by_two_threads(In x, Out y) {
  static __device__ __half h[2][64];
  h[blockIdx.x][threadIdx.x] = __float2half(x[threadIdx.x] + threadIdx.x);
  __syncthreads();
  y[threadIdx.x] = __half2float(h[blockIdx.x][63 - threadIdx.x]);
}
KERNEL warp_private_rows(In x, Out y) {
  static __device__ float row[4][32];
  float* mine = row[blockIdx.x * 2 + threadIdx.x / 32];
  mine[threadIdx.x % 32] = x[threadIdx.x] * threadIdx.x;
  __syncwarp();
  y[threadIdx.x] = mine[31 - threadIdx.x % 32];
}
KERNEL own_element_many_times(In x, Out y) {
  static __device__ float a[128];
  float* p = a + blockIdx.x * 64 + threadIdx.x;
  for (int i = 0; i < 5; ++i) *p = *p * 0.5f + x[i];
  y[threadIdx.x] = *p;
}
KERNEL half_of_a_pair_undefined(In x, Out y) {
  float v;
  asm volatile("{\n .reg .b32 t, u, w;\n .reg .b64 p;\n mov.b32 u, %1;\n mov.b64 p, {u, t};\n cvt.u32.u64 w, p;\n mov.b32 %0, w;\n}" : "=f"(v) : "f"(x[threadIdx.x]));
  y[threadIdx.x] = v;
}
KERNEL async_copies_of_own_results(In x, Out y) {
  static __device__ float g[2][64];
  __shared__ __align__(16) float s[64];
  float sum = 0;
  for (int i = 0; i < 3; ++i) {
    g[blockIdx.x][threadIdx.x] = x[threadIdx.x] + i;
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s + threadIdx.x)), "l"(g[blockIdx.x] + 63 - threadIdx.x) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    sum += s[threadIdx.x];
  }
  y[threadIdx.x] = sum;
}
KERNEL bulk_copy_of_own_results(In x, Out y) {
  static __device__ __align__(16) float g[2][64];
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long b;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&b)) : "memory");
  g[blockIdx.x][threadIdx.x] = x[threadIdx.x] + 1;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(address_of(&b)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(address_of(s)), "l"(g[blockIdx.x]), "r"(address_of(&b)) : "memory");
  }
  asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra AGAIN;\n}" ::"r"(address_of(&b)) : "memory");
  y[threadIdx.x] = s[63 - threadIdx.x];
}
KERNEL carried_past_the_end(In x, Out y) {
  __shared__ float s[64];
  float v;  // of the last threads nobody asks
  if (threadIdx.x < 50) v = x[threadIdx.x] * 2;
  s[63 - threadIdx.x] = v;
  __syncthreads();
  v = s[63 - threadIdx.x];
  if (threadIdx.x < 50) y[threadIdx.x] = v;
}
KERNEL merge_looks_behind_the_end(In x, Out y) {
  // a merge may look one place behind both lists, and does not take what it finds
  __shared__ int s[65];
  s[threadIdx.x] = threadIdx.x % 32 * 2 + threadIdx.x / 32 + (int)x[0];
  __syncthreads();
  if (threadIdx.x != 0) return;
  int i = 0, j = 32, a = s[0], b = s[32];
  for (int n = 0; n < 64; ++n) {
    const bool second = j < 64 && (i >= 32 || b < a);
    y[n] = second ? b : a;
    if (second) b = s[++j];
    else a = s[++i];
  }
}
KERNEL pairs_published_whole(In x, Out y) {
  static __device__ __align__(16) unsigned long long pair[2];
  const int rounds = 2000 * (int)x[0];
  for (unsigned long long i = 1; threadIdx.x == 0 && i <= rounds; ++i) {
    unsigned long long a, b;
    if (blockIdx.x == 0) asm volatile("st.relaxed.gpu.v2.u64 [%0], {%1, %1};" ::"l"(pair), "l"(i) : "memory");
    else asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(pair) : "memory");
    if (blockIdx.x == 1 && a != b) __trap();
  }
  y[threadIdx.x] = 1;
}
KERNEL tile_of_two_warps(In x, Out y) {
  // and barriers in what the system keeps of shared memory
  __shared__ cg::block_tile_memory<64> memory;
  auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
  y[threadIdx.x] = cg::reduce(tile, (int)x[threadIdx.x], cg::plus<int>()) + tile.shfl((int)threadIdx.x, 40);
}
KERNEL division_of_128_bits(In x, Out y) {
  const unsigned __int128 a = (unsigned __int128)0x0123456789abcdefull << 64 | 0xfedcba9876543210ull;
  const unsigned long long b = 12345 * (unsigned)x[0];
  y[threadIdx.x] = (unsigned)((a + threadIdx.x) / b) == 0xeef1631b && (unsigned)((a + threadIdx.x) % b) == 4365 + threadIdx.x;
}
__device__ __noinline__ int last_of(int n) {
  int* p;
  asm volatile("{\n .reg .u64 l;\n alloca.u64 l, %1, 16;\n cvta.local.u64 %0, l;\n}" : "=l"(p) : "l"(n * sizeof(int)) : "memory");
  for (int i = 0; i < n; ++i) p[i] = i * i;
  return p[n - 1] + p[n / 2];
}
KERNEL stack_as_long_as_asked(In x, Out y) {
  float sum = 0;
  for (int i = 0; i < 40; ++i) sum = last_of(threadIdx.x + 100 * (int)x[0]);
  y[threadIdx.x] = sum;
}
KERNEL sparse_product(In x, Out y) {
  const int lane = threadIdx.x % 32, k = lane % 4 * 2;
  __half2 ones = __floats2half2_rn(x[0], x[0]);
  __half2 b[2] = {__floats2half2_rn(k, k + 1), __floats2half2_rn(k + 8, k + 9)};  // B[k][n] = k
  const unsigned one = *(unsigned*)&ones, chosen = lane / 4 % 2 ? 0xeeeeeeeeu : 0x44444444u;
  float d[4] = {0, 0, 0, 0};
  asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4}, {%5,%6}, {%0,%1,%2,%3}, %7, 0x1;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(one), "r"(*(unsigned*)&b[0]), "r"(*(unsigned*)&b[1]), "r"(chosen));
  y[threadIdx.x] = d[0] == d[1] && d[0] == d[2] ? d[3] : -1;
}
KERNEL three_of_a_vector(In x, Out y) {
  // the compiler reads four and says that it looks at three
  __shared__ __align__(16) float part[8];
  if (threadIdx.x < 3) part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = part[0] + part[1] + part[2];
}
// The compiler reads whole items and says that it drops their last field.
struct __align__(16) Item { float a, b, c; int count; };
__device__ Item items[2][64];
KERNEL neighbour_counts_before(In x, Out y) {
  Item* mine = items[blockIdx.x];
  const int i = threadIdx.x;
  mine[i].a = mine[i].b = mine[i].c = x[i];
  __syncthreads();
  mine[i ^ 1].count = i;
  y[i] = mine[i].a + mine[i].b + mine[i].c;
}
KERNEL neighbour_counts_after(In x, Out y) {
  Item* mine = items[blockIdx.x];
  const int i = threadIdx.x;
  mine[i].a = mine[i].b = mine[i].c = x[i];
  __syncthreads();
  y[i] = mine[i].a + mine[i].b + mine[i].c;
  mine[i ^ 1].count = i;
}
KERNEL partial_tile_exchanged(In x, Out y) {
  __shared__ float s[64];
  float v;
  if (threadIdx.x < 40) v = x[threadIdx.x] * 2;
  s[threadIdx.x] = v;
  __syncthreads();
  const float w = s[63 - threadIdx.x];
  y[threadIdx.x] = threadIdx.x >= 24 ? w : 1.0f;
}
KERNEL partial_tile_compared(In x, Out y) {
  __shared__ float s[64], t[64];
  float v;
  asm volatile("{\n .reg .f32 t;\n .reg .pred p;\n setp.lt.u32 p, %2, 40;\n @p mov.f32 t, %1;\n mov.f32 %0, t;\n}" : "=f"(v) : "f"(x[threadIdx.x] + threadIdx.x), "r"(threadIdx.x));
  s[threadIdx.x] = v;
  __syncthreads();
  const float mine = s[threadIdx.x], other = s[threadIdx.x ^ 1];
  if (mine > other)
    t[threadIdx.x] = mine;
  else
    t[threadIdx.x ^ 0] = other;
  __syncthreads();
  if (threadIdx.x < 40) y[threadIdx.x] = t[threadIdx.x];
}
KERNEL tile_filled_up_later(In x, Out y) {
  __shared__ float s[64];
  float v;
  asm volatile("{\n .reg .f32 t;\n .reg .pred p;\n setp.lt.u32 p, %2, 40;\n @p mov.f32 t, %1;\n mov.f32 %0, t;\n}" : "=f"(v) : "f"(x[threadIdx.x]), "r"(threadIdx.x));
  s[threadIdx.x] = v;
  __syncthreads();
  if (threadIdx.x >= 40) s[threadIdx.x] = 3;
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}
KERNEL pairs_copied_twice(In x, Out y) {
  struct __align__(16) Pair { double value; int tag; };
  __shared__ Pair first[64], second[64];
  first[threadIdx.x].value = x[threadIdx.x], first[threadIdx.x].tag = threadIdx.x;
  __syncthreads();
  second[threadIdx.x] = first[63 - threadIdx.x];
  __syncthreads();
  first[threadIdx.x] = second[threadIdx.x ^ 1];
  __syncthreads();
  y[threadIdx.x] = first[threadIdx.x].value + first[threadIdx.x].tag;
}
KERNEL grid_barrier_by_hand(In x, Out y) {
  static __device__ unsigned arrived;
  static __device__ float part[2][64];
  part[blockIdx.x][threadIdx.x] = x[threadIdx.x] + 4;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned all = (atomicAdd(&arrived, 1) / gridDim.x + 1) * gridDim.x;
    while (*(volatile unsigned*)&arrived < all) {}
    __threadfence();
  }
  __syncthreads();
  y[threadIdx.x] = part[1 - blockIdx.x][threadIdx.x];
}
KERNEL volatile_flag_of_each_lane(In x, Out y) {
  __shared__ volatile int ready[64];
  ready[threadIdx.x] = 0;
  __syncthreads();
  ready[threadIdx.x] = 1;
  while (ready[threadIdx.x ^ 1] == 0) {
  }
  y[threadIdx.x] = x[0];
}
KERNEL volatile_halves_by_a_flag(In x, Out y) {
  __shared__ volatile float s[64];
  __shared__ volatile int ready[2];
  const int half = threadIdx.x % 32 / 16, warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) ready[warp] = 0;
  __syncthreads();
  if (half == 0) {
    s[threadIdx.x] = x[threadIdx.x];
    __syncwarp(0xffff);
    if (threadIdx.x % 32 == 0) ready[warp] = 1;
  } else {
    while (ready[warp] == 0) {
    }
    s[threadIdx.x] = s[threadIdx.x ^ 16] * 2;
  }
  y[threadIdx.x] = s[threadIdx.x];
}
KERNEL volatile_steps_by_shuffles(In x, Out y) {
  __shared__ volatile float s[64];
  float v = x[threadIdx.x];
  for (int i = 0; i < 3; ++i) {
    s[threadIdx.x] = v;
    const float other = __shfl_xor_sync(~0u, v, 1);
    v += s[threadIdx.x ^ 1] - other;
    if (__all_sync(~0u, v > 1e30f)) break;
  }
  y[threadIdx.x] = v;
}
KERNEL volatile_word_that_all_write(In x, Out y) {
  __shared__ volatile int any;
  any = 0;
  __syncthreads();
  if (x[threadIdx.x] > -1e30f) any = 1;
  y[threadIdx.x] = any + x[0];
}
__device__ float* across(float* p) {
  float* there;
  asm volatile("{\n .reg .u32 r;\n mov.u32 r, %%cluster_ctarank;\n xor.b32 r, r, 1;\n mapa.u64 %0, %1, r;\n}" : "=l"(there) : "l"(p));
  return there;
}
KERNEL __cluster_dims__(2, 1, 1) cluster_exchanges_in_turns(In x, Out y) {
  __shared__ float s[64], t[64];
  s[threadIdx.x] = x[threadIdx.x];
  for (int i = 0; i < 3; ++i) {
    asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
    const float v = across(s)[threadIdx.x];
    across(t)[63 - threadIdx.x] = v;
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    const float own = s[threadIdx.x];
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    s[threadIdx.x] = own + t[threadIdx.x];
    __syncthreads();
  }
  if (blockIdx.x == 0) y[threadIdx.x] = s[threadIdx.x];
}
KERNEL __cluster_dims__(2, 1, 1) cluster_flag_and_fences(In x, Out y) {
  __shared__ float s[64];
  __shared__ int ready;
  if (threadIdx.x == 0) ready = 0;
  cg::this_cluster().sync();
  across(s)[threadIdx.x] = x[threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicExch((int*)across((float*)&ready), 1);
    while (atomicAdd(&ready, 0) == 0) {
    }
    __threadfence();
  }
  __syncthreads();
  if (blockIdx.x == 0) y[threadIdx.x] = s[threadIdx.x];
  cg::this_cluster().sync();
}
KERNEL __cluster_dims__(2, 1, 1) cluster_reader_says_when(In x, Out y) {
  __shared__ float s[64];
  __shared__ unsigned long long done;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(address_of(&done)) : "memory");
  s[threadIdx.x] = x[threadIdx.x];
  cg::this_cluster().sync();
  const float v = across(s)[threadIdx.x];
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address_of(&done)), "r"(cg::this_cluster().block_rank() ^ 1));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
  wait_parity(address_of(&done), 0);
  s[threadIdx.x] = v + 1;
  if (blockIdx.x == 0) y[threadIdx.x] = s[threadIdx.x];
}
KERNEL __cluster_dims__(2, 1, 1) volatile_by_its_own_rank(In x, Out y) {
  __shared__ float s[64];
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address_of(s + threadIdx.x)), "r"(cg::this_cluster().block_rank()));
  asm volatile("st.volatile.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(x[threadIdx.x]) : "memory");
  float v;
  asm volatile("ld.volatile.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(there) : "memory");
  y[threadIdx.x] = v;
}

// -- Ordinary accesses and atomics, ordered.
KERNEL counter_of_each_round(In x, Out y) {
  __shared__ int n;
  float v = 0;
  for (int i = 0; i < 3; ++i) {
    if (threadIdx.x == 0) n = 0;
    __syncthreads();
    atomicAdd(&n, i + (int)x[threadIdx.x]);
    __syncthreads();
    v += n;
    __syncthreads();
  }
  y[threadIdx.x] = v;
}
KERNEL three_counters_in_turns(In x, Out y) {
  __shared__ int n[3];
  if (threadIdx.x < 3) n[threadIdx.x] = 0;
  __syncthreads();
  float v = 0;
  for (int i = 0; i < 5; ++i) {
    if (threadIdx.x == 0) n[(i + 1) % 3] = 0;
    atomicAdd(n + i % 3, (int)x[threadIdx.x]);
    __syncthreads();
    v += n[i % 3];
  }
  y[threadIdx.x] = v;
}
KERNEL bins_of_each_warp(In x, Out y) {
  __shared__ int bins[2][16];
  int* mine = bins[threadIdx.x / 32];
  if (threadIdx.x % 32 < 16) mine[threadIdx.x % 32] = 0;
  __syncwarp();
  atomicAdd(mine + threadIdx.x * 7 % 16, (int)x[threadIdx.x]);
  __syncwarp();
  y[threadIdx.x] = mine[threadIdx.x % 16];
}
KERNEL sums_read_by_vectors(In x, Out y) {
  __shared__ __align__(16) int n[64];
  n[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(n + (threadIdx.x * 5 & 63), (int)x[threadIdx.x]);
  __syncthreads();
  const int4 v = *(int4*)(n + threadIdx.x / 4 * 4);
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
KERNEL copies_then_atomics_behind_a_barrier(In x, Out y) {
  __shared__ __align__(16) float s[64];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s + threadIdx.x)),
               "l"(x + threadIdx.x)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  atomicAdd(s + 63 - threadIdx.x, 1.0f);
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
KERNEL places_by_a_counter(In x, Out y) {
  __shared__ int n;
  __shared__ float list[64];
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  list[atomicAdd(&n, 1)] = x[threadIdx.x] + 1;
  __syncthreads();
  if (threadIdx.x < n) y[threadIdx.x] = list[threadIdx.x];
}
KERNEL maximum_tested_first(In x, Out y) {
  __shared__ int most;
  static __device__ int most_of_all;
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  const int v = (int)x[threadIdx.x] * threadIdx.x;
  if (v > most) atomicMax(&most, v);
  if (v > most_of_all) atomicMax(&most_of_all, v);
  __syncthreads();
  y[threadIdx.x] = most;
}
KERNEL sum_by_compare_and_swap(In x, Out y) {
  static __device__ unsigned long long total;
  unsigned long long old = total, assumed;
  do {
    assumed = old;
    old = atomicCAS(&total, assumed,
                    __double_as_longlong(x[threadIdx.x] + __longlong_as_double(assumed)));
  } while (assumed != old);
}
KERNEL sum_of_shared_by_compare_and_swap(In x, Out y) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  int old = total, assumed;
  do {
    assumed = old;
    old = atomicCAS(&total, assumed, assumed + (int)x[threadIdx.x]);
  } while (assumed != old);
  __syncthreads();
  y[threadIdx.x] = total;
}
KERNEL last_block_resets_the_counter(In x, Out y) {
  static __device__ float part[2];
  static __device__ unsigned done;
  __shared__ bool last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = x[0] + 2;
    __threadfence();
    last = atomicAdd(&done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    y[0] = part[0] + part[1];
    done = 0;
  }
}
KERNEL counter_of_its_block(In x, Out y) {
  static __device__ int n[2];
  atomicAdd_block(n + blockIdx.x, (int)x[threadIdx.x]);
  __syncthreads();
  y[threadIdx.x] = n[blockIdx.x];
}
KERNEL cleared_counted_and_read_in_global(In x, Out y) {
  static __device__ int n[2] = {5, 5};
  if (threadIdx.x == 0) n[blockIdx.x] = 0;
  __syncthreads();
  atomicAdd(n + blockIdx.x, (int)x[threadIdx.x]);
  __syncthreads();
  y[threadIdx.x] = n[blockIdx.x];
}
KERNEL maximum_of_the_output(In x, Out y) {
  if (blockIdx.x > 0) return;
  int* most = (int*)y;
  most[threadIdx.x] = 0;
  __syncthreads();
  atomicMax(most + threadIdx.x / 2, (int)x[threadIdx.x] * threadIdx.x);
}

// -- Fences and flags.
KERNEL flag_of_each_thread(In x, Out y) {
  __shared__ volatile int ready[32];
  __shared__ float s[32];
  if (threadIdx.x < 32) ready[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    s[threadIdx.x] = x[threadIdx.x] + 1;
    __threadfence_block();
    ready[threadIdx.x] = 1;
  } else {
    while (ready[threadIdx.x - 32] == 0) {
    }
    __threadfence_block();
    y[threadIdx.x] = s[threadIdx.x - 32];
  }
}
KERNEL counted_writers(In x, Out y) {
  __shared__ int written;
  __shared__ float s[32];
  if (threadIdx.x == 0) written = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    s[threadIdx.x] = x[threadIdx.x] + 2;
    __threadfence_block();
    atomicAdd(&written, 1);
  } else {
    while (*(volatile int*)&written < 32) {
    }
    __threadfence_block();
    y[threadIdx.x] = s[63 - threadIdx.x];
  }
}
KERNEL volatile_with_barriers(In x, Out y) {
  __shared__ volatile float s[64];
  float v = x[threadIdx.x];
  for (int i = 0; i < 3; ++i) {
    s[threadIdx.x] = v;
    __syncthreads();
    v = s[63 - threadIdx.x] + 1;
    __syncthreads();
  }
  y[threadIdx.x] = v;
}
KERNEL volatile_scratch_with_barrier(In x, Out y) {
  static __device__ volatile float w[2][64];
  w[blockIdx.x][threadIdx.x] = x[threadIdx.x] + 1;
  __syncthreads();
  y[threadIdx.x] = w[blockIdx.x][threadIdx.x ^ 32];
}
KERNEL arrivals_then_barrier(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x < 32) {
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    asm volatile("bar.sync 2, 64;" ::: "memory");
    y[threadIdx.x] = s[threadIdx.x + 32];
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    const float v = s[threadIdx.x - 32];
    asm volatile("bar.arrive 2, 64;" ::: "memory");
    y[threadIdx.x] = v;
  }
}
KERNEL mbarriers_of_one_lane(In x, Out y) {
  __shared__ unsigned long long full, empty;
  __shared__ float s[32];
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&empty)) : "memory");
  }
  __syncthreads();
  float v = 0;
  for (int i = 0; i < 3; ++i) {
    if (threadIdx.x < 32) {
      if (i > 0) wait_parity(address_of(&empty), (i - 1) & 1);
      s[threadIdx.x] = x[threadIdx.x] + i;
      __syncwarp();
      if (threadIdx.x == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&full))
                     : "memory");
    } else {
      wait_parity(address_of(&full), i & 1);
      v += s[63 - threadIdx.x];
      __syncwarp();
      if (threadIdx.x == 32)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&empty))
                     : "memory");
    }
  }
  if (threadIdx.x >= 32) y[threadIdx.x] = v;
}
KERNEL stage_given_back_behind_syncwarp(In x, Out y) {
  __shared__ __align__(16) float s[32];
  __shared__ unsigned long long full, empty;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&empty)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  float v = 0;
  for (int i = 0; i < 3; ++i) {
    if (threadIdx.x == 0) {
      if (i > 0) wait_parity(address_of(&empty), (i - 1) & 1);
      asm volatile(
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(address_of(&full))
          : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, "
          "[%2];" ::"r"(address_of(s)),
          "l"(x), "r"(address_of(&full))
          : "memory");
    } else if (threadIdx.x >= 32) {
      wait_parity(address_of(&full), i & 1);
      v += s[63 - threadIdx.x];
      __syncwarp();
      if (threadIdx.x == 32)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&empty))
                     : "memory");
    }
  }
  if (threadIdx.x >= 32) y[threadIdx.x] = v;
}
KERNEL all_fence_and_one_signals(In x, Out y) {
  static __device__ float w[64];
  static __device__ unsigned flag;
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x] * 3;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(&flag, 12345u);
  } else {
    if (threadIdx.x == 0)
      while (atomicAdd(&flag, 0) != 12345u) {
      }
    __syncthreads();
  }
  __threadfence();
  if (blockIdx.x == 1) y[threadIdx.x] = w[63 - threadIdx.x];
}
KERNEL one_fences_behind_the_barrier(In x, Out y) {
  static __device__ float w[64];
  static __device__ unsigned flag;
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x] * 3;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      *(volatile unsigned*)&flag = 1;
    }
  } else {
    if (threadIdx.x == 0) {
      while (*(volatile unsigned*)&flag == 0) {
      }
      __threadfence();
    }
    __syncthreads();
    y[threadIdx.x] = w[63 - threadIdx.x];
  }
}
KERNEL value_and_state_in_one_word(In x, Out y) {
  static __device__ volatile unsigned long long state[2];
  if (threadIdx.x == 0) {
    unsigned long long before = 0;
    if (blockIdx.x > 0) {
      do before = state[blockIdx.x - 1];
      while (before >> 32 == 0);
    }
    const unsigned sum = (unsigned)before + (unsigned)x[0] + 4;
    state[blockIdx.x] = 1ull << 32 | sum;
    if (blockIdx.x == 1) y[0] = sum;
  }
}
KERNEL aggregates_and_prefixes(In x, Out y) {
  static __device__ float aggregate[2], prefix[2];
  static __device__ volatile int state[2];
  if (threadIdx.x == 0) {
    aggregate[blockIdx.x] = x[0] + 1;
    __threadfence();
    state[blockIdx.x] = 1;
    float before = 0;
    if (blockIdx.x > 0) {
      int seen;
      do seen = state[blockIdx.x - 1];
      while (seen == 0);
      __threadfence();
      before = seen == 2 ? prefix[blockIdx.x - 1] : aggregate[blockIdx.x - 1];
    }
    prefix[blockIdx.x] = before + aggregate[blockIdx.x];
    __threadfence();
    state[blockIdx.x] = 2;
    if (blockIdx.x == 1) y[0] = prefix[1];
  }
}
KERNEL released_by_an_atomic(In x, Out y) {
  static __device__ float data[64];
  static __device__ int ready;
  if (blockIdx.x == 0) {
    data[threadIdx.x] = x[threadIdx.x] + 7;
    __syncthreads();
    if (threadIdx.x == 0)
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&ready) : "memory");
  } else {
    int v;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(&ready) : "memory");
    } while (v == 0);
    y[threadIdx.x] = data[63 - threadIdx.x];
  }
}
KERNEL read_only_input(In x, Out y) {
  const float4 v = __ldg((const float4*)x + threadIdx.x % 16);
  y[threadIdx.x] = v.x + v.w + __ldg(x + threadIdx.x);
}
KERNEL read_only_then_overwritten(In x, Out y) {
  static __device__ float g[2][64];
  float* mine = g[blockIdx.x] + threadIdx.x;
  const float v = __ldg(mine);
  *mine = v + x[threadIdx.x];
}

// -- Clusters.
KERNEL __cluster_dims__(2, 1, 1) remote_counter_in_phases(In x, Out y) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  cg::this_cluster().sync();
  for (int i = 0; i < 2; ++i) {
    atomicAdd((int*)across((float*)&n), (int)x[threadIdx.x]);
    cg::this_cluster().sync();
    if (blockIdx.x == 0 && i == 1) y[threadIdx.x] = n;
    cg::this_cluster().sync();
  }
}

// -- Collectives in several places, and values of absent lanes that nobody uses.
KERNEL shuffle_in_both_branches(In x, Out y) {
  float v = x[threadIdx.x] + threadIdx.x % 32, w;
  if (threadIdx.x % 32 < 16) {
    v = v * 3.0f;
    w = __shfl_xor_sync(0xffffffffu, v, 16);
    w -= 1.0f;
  } else {
    v = v + 7.0f;
    w = __shfl_xor_sync(0xffffffffu, v, 16);
    w *= 2.0f;
  }
  y[threadIdx.x] = w;
}
KERNEL shuffle_in_three_places(In x, Out y) {
  int v = threadIdx.x % 32 + (int)x[threadIdx.x], w = 0;
  if (threadIdx.x % 32 < 8)
    w = __shfl_sync(~0u, v * 2, 31 - threadIdx.x % 32) + 1;
  else if (threadIdx.x % 32 < 20)
    w = __shfl_sync(~0u, v * 3, 31 - threadIdx.x % 32) + 2;
  else
    w = __shfl_sync(~0u, v * 5, 31 - threadIdx.x % 32) + 3;
  y[threadIdx.x] = w;
}
KERNEL votes_in_both_branches(In x, Out y) {
  unsigned votes;
  if (threadIdx.x % 2)
    votes = __ballot_sync(~0u, threadIdx.x % 32 < 10) + 1;
  else
    votes = __ballot_sync(~0u, threadIdx.x % 32 > 20) + 2;
  y[threadIdx.x] = __popc(votes - 2 + threadIdx.x % 2) + x[0];
}
KERNEL half_a_warp_summed(In x, Out y) {
  float v = x[threadIdx.x];
  if (threadIdx.x % 32 < 16) {
    for (int o = 8; o; o >>= 1) v += __shfl_down_sync(0xffffu, v, o);
    if (threadIdx.x % 32 == 0) y[threadIdx.x] = v;
  }
}
KERNEL twenty_lanes_summed(In x, Out y) {
  float v = x[threadIdx.x];
  const int lane = threadIdx.x % 32;
  if (lane < 20) {
    for (int o = 16; o; o >>= 1) {
      const float w = __shfl_down_sync(0xfffffu, v, o);
      if (lane + o < 20) v += w;
    }
    if (lane == 0) y[threadIdx.x] = v;
  }
}
KERNEL twenty_lanes_by_selection(In x, Out y) {
  float v = x[threadIdx.x];
  const int lane = threadIdx.x % 32;
  if (lane < 20) {
    for (int o = 16; o; o >>= 1) {
      const float w = __shfl_down_sync(__activemask(), v, o);
      v += lane + o < 20 ? w : 0.0f;
    }
    if (lane == 0) y[threadIdx.x] = v;
  }
}
KERNEL rest_of_a_block_summed(In x, Out y) {
  if (threadIdx.x >= 40) return;
  float v = x[threadIdx.x];
  const int left = threadIdx.x < 32 ? 32 : 8, lane = threadIdx.x % 32;
  for (int o = 16; o; o >>= 1) {
    const float w = __shfl_down_sync(~0u, v, o);
    if (lane + o < left) v += w;
  }
  if (lane == 0) y[threadIdx.x] = v;
}
KERNEL double_halves_summed(In x, Out y) {
  double v = x[threadIdx.x];
  if (threadIdx.x % 32 < 8) {
    for (int o = 4; o; o >>= 1) v += __shfl_down_sync(0xffu, v, o);
    if (threadIdx.x % 32 == 0) y[threadIdx.x] = v;
  }
}
KERNEL not_a_number_by_all_lanes(In x, Out y) {
  __shared__ float s[2];
  float a = __int_as_float(0x7fc00000 + threadIdx.x % 32);
  a += x[threadIdx.x] * 0.0f;
  for (int o = 16; o > 0; o /= 2) a = __shfl_xor_sync(~0u, a, o) + a;
  s[threadIdx.x / 32] = a;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x / 32];
}
