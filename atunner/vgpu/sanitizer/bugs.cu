// Kernels with one planted bug each, on the line marked BUG. The comment before a kernel names the kind of hazard. All are
// launched with 2 blocks of 64 threads, 1024 bytes of dynamic shared memory, and x and y of 64 floats.
#include <cuda_fp16.h>

#define KERNEL extern "C" __global__ void
typedef const float* In;
typedef float* Out;
__device__ unsigned address_of(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// ---- out of bounds
// out of bounds
KERNEL read_past_end(In x, Out y) { y[threadIdx.x] = x[threadIdx.x + 64 * blockIdx.x]; }  // BUG
// out of bounds
KERNEL write_past_end(In x, Out y) { y[threadIdx.x * 2] = x[threadIdx.x]; }  // BUG
// out of bounds
KERNEL read_before_start(In x, Out y) { y[threadIdx.x] = x[(int)threadIdx.x - 1]; }  // BUG
// out of bounds
KERNEL off_by_one_loop(In x, Out y) {
  float s = 0;
  for (int i = 0; i <= 64; ++i)
    s += x[i];  // BUG
  y[threadIdx.x] = s;
}
// out of bounds
KERNEL vector_read_over_end(In x, Out y) {
  float4 v = *(const float4*)(x + threadIdx.x / 4 * 4 + 4);  // BUG
  y[threadIdx.x] = v.x + v.w;
}
// out of bounds
KERNEL null_pointer(In x, Out y) {
  const float* p;
  asm volatile("mov.u64 %0, 0;" : "=l"(p));
  y[threadIdx.x] = *p;  // BUG
}
// out of bounds
KERNEL wild_pointer(In x, Out y) {
  *(float*)(0x123456789000ull + (unsigned long long)(x[0] > 1e30f)) = 1.0f;  // BUG
  y[threadIdx.x] = 0;
}
// out of bounds
KERNEL atomic_past_end(In x, Out y) {
  if (blockIdx.x == 0) y[threadIdx.x] = 0;
  __syncthreads();
  if (blockIdx.x == 0) atomicAdd(y + threadIdx.x + 1, x[threadIdx.x]);  // BUG
}
// out of bounds
KERNEL reduction_past_end(In x, Out y) {
  // BUG
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(y + 64 + threadIdx.x), "f"(x[0]) : "memory");
}
// out of bounds
KERNEL shared_past_end(In x, Out y) {
  extern __shared__ float s[];
  s[threadIdx.x * 5] = x[threadIdx.x];  // BUG
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
// out of bounds
KERNEL shared_generic_past_end(In x, Out y) {
  extern __shared__ float s[];
  float* p = x[0] > 1e30f ? y : s;
  p[256 + threadIdx.x] = 1.0f;  // BUG
}
// out of bounds
KERNEL shared_atomic_past_end(In x, Out y) {
  extern __shared__ int n[];
  atomicAdd(n + 256 + threadIdx.x, 1);  // BUG
  y[threadIdx.x] = x[0];
}
// out of bounds
KERNEL local_array_past_end(In x, Out y) {
  float a[8];
  for (int i = 0; i < 8; ++i) a[i] = x[i];
  y[threadIdx.x] = a[threadIdx.x + (int)x[0] * 0];  // BUG
}
// out of bounds
KERNEL async_copy_past_end(In x, Out y) {
  __shared__ __align__(16) float s[64];
  // BUG
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(address_of(s + threadIdx.x % 16 * 4)), "l"(x + threadIdx.x * 4) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
}
// out of bounds
KERNEL async_copy_beyond_shared(In x, Out y) {
  // BUG
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(1024 + threadIdx.x * 4), "l"(x + threadIdx.x) : "memory");
  y[threadIdx.x] = 0;
}
// out of bounds
KERNEL ldmatrix_past_end(In x, Out y) {
  extern __shared__ __align__(16) unsigned words[];
  for (int i = threadIdx.x; i < 256; i += 64) words[i] = i;
  __syncthreads();
  unsigned r;
  // BUG
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(address_of(words) + 1024 - threadIdx.x % 8 * 16));
  y[threadIdx.x] = r;
}
// out of bounds
KERNEL stack_overflow_deep(In x, Out y);
// BUG
__device__ __noinline__ float descend(In x, int n) { return n == 0 ? 0 : x[n & 63] + descend(x, n + 1) * 0.5f; }
KERNEL stack_overflow_deep(In x, Out y) { y[threadIdx.x] = descend(x, 1); }
// out of bounds
KERNEL use_after_free(In x, Out y) {
  float* p = (float*)malloc(64);
  *p = x[0];
  free(p);
  y[threadIdx.x] = *(volatile float*)p;  // BUG
}
// out of bounds
KERNEL double_free(In x, Out y) {
  float* p = (float*)malloc(64);
  y[threadIdx.x] = x[0];
  free(p);
  free(p);  // BUG
}
// out of bounds
KERNEL __cluster_dims__(2, 1, 1) cluster_rank_beyond(In x, Out y) {
  __shared__ float s;
  s = 1;
  unsigned there;
  float v;
  asm volatile("mapa.shared::cluster.u32 %0, %1, 2;" : "=r"(there) : "r"(address_of(&s)));
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(there));  // BUG
  y[threadIdx.x] = v + x[0];
}
// out of bounds
KERNEL bulk_copy_past_end(In x, Out y) {
  __shared__ __align__(16) float s[128];
  __shared__ unsigned long long b;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&b)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(address_of(&b)) : "memory");
    // BUG
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(address_of(s)), "l"(x), "r"(address_of(&b)) : "memory");
  }
}

// ---- misaligned
// misaligned address
// BUG
KERNEL misaligned_float2(In x, Out y) { *(float2*)(y + threadIdx.x / 2 + 1) = make_float2(x[0], x[1]); }
// misaligned address
KERNEL misaligned_float4(In x, Out y) {
  float4 v = *(const float4*)(x + threadIdx.x % 8 + 1);  // BUG
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
// misaligned address
KERNEL misaligned_shared(In x, Out y) {
  extern __shared__ char bytes[];
  *(float*)(bytes + 2 * threadIdx.x) = x[threadIdx.x];  // BUG
}
// misaligned address
// BUG
KERNEL misaligned_atomic(In x, Out y) { atomicAdd((unsigned long long*)(y + 1), (unsigned long long)x[0]); }
// misaligned address
KERNEL misaligned_async_copy(In x, Out y) {
  __shared__ __align__(16) float s[64];
  // BUG
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address_of(s)), "l"(x + 1) : "memory");
}
// misaligned address
KERNEL misaligned_ldmatrix(In x, Out y) {
  extern __shared__ __align__(16) unsigned words[];
  for (int i = threadIdx.x; i < 256; i += 64) words[i] = i;
  __syncthreads();
  unsigned r;
  // BUG
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(address_of(words) + 8));
  y[threadIdx.x] = r;
}
// misaligned address
KERNEL misaligned_bulk_copy(In x, Out y) {
  __shared__ __align__(16) float s[64];
  if (threadIdx.x == 0)
    // BUG
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y), "r"(address_of(s)), "r"(8 + (int)(x[0] > 1e30f)) : "memory");
}
// misaligned address
KERNEL misaligned_mbarrier(In x, Out y) {
  extern __shared__ char bytes[];
  // BUG
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(bytes) + 4) : "memory");
}

// ---- uninitialised shared memory
// uninitialised shared memory
KERNEL uninitialised_static(In x, Out y) {
  __shared__ float s[64];
  y[threadIdx.x] = s[threadIdx.x] + x[0];  // BUG
}
// uninitialised shared memory
KERNEL uninitialised_dynamic(In x, Out y) {
  extern __shared__ float s[];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x + 1];  // BUG
}
// uninitialised shared memory
KERNEL uninitialised_half_of_word(In x, Out y) {
  __shared__ short s[128];
  s[threadIdx.x * 2] = 1;
  __syncthreads();
  y[threadIdx.x] = *(int*)(s + threadIdx.x * 2);  // BUG
}
// uninitialised shared memory
KERNEL uninitialised_counter(In x, Out y) {
  __shared__ int n;
  atomicAdd(&n, 1);  // BUG
  y[threadIdx.x] = x[0];
}
// uninitialised shared memory
KERNEL uninitialised_tail(In x, Out y) {
  extern __shared__ float s[];
  if (threadIdx.x < 60) s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];  // BUG
}
// uninitialised shared memory
KERNEL uninitialised_matrix(In x, Out y) {
  extern __shared__ __align__(16) unsigned words[];
  if (threadIdx.x < 16) words[threadIdx.x] = 1;
  __syncthreads();
  unsigned r;
  // BUG
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(address_of(words) + threadIdx.x % 8 * 16));
  y[threadIdx.x] = r;
}
// uninitialised shared memory
KERNEL mbarrier_without_init(In x, Out y) {
  __shared__ unsigned long long b;
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&b)) : "memory");  // BUG
}

// ---- races in shared memory
// race
KERNEL no_barrier_at_all(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[63 - threadIdx.x];  // BUG
}
// race
KERNEL no_syncwarp(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[threadIdx.x ^ 1];  // BUG
}
// race
KERNEL read_then_overwrite(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float v = s[63 - threadIdx.x];
  s[threadIdx.x] = v * 2;  // BUG
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
// race
KERNEL many_writers(In x, Out y) {
  __shared__ float s;
  s = x[threadIdx.x];  // BUG
  __syncthreads();
  y[threadIdx.x] = s;
}
// race
KERNEL syncwarp_across_warps(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x ^ 32];  // BUG
}
// race
KERNEL reduction_without_last_barrier(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (int o = 32; o > 0; o >>= 1) {
    if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];  // BUG
    if (o == 32) __syncthreads();
  }
  y[threadIdx.x] = threadIdx.x ? 0 : s[0];
}
// race
KERNEL stencil_in_place(In x, Out y) {
  __shared__ float s[66];
  s[threadIdx.x + 1] = x[threadIdx.x];
  if (threadIdx.x < 2) s[threadIdx.x * 65] = 0;
  __syncthreads();
  s[threadIdx.x + 1] = s[threadIdx.x] + s[threadIdx.x + 2];  // BUG
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x + 1];
}
// race
KERNEL double_buffer_reused_early(In x, Out y) {
  __shared__ float s[2][64];
  float v = x[threadIdx.x];
  for (int i = 0; i < 4; ++i) {
    s[i & 1][threadIdx.x] = v;  // BUG
    if (i % 2 == 0) __syncthreads();
    v = s[i & 1][63 - threadIdx.x] + 1;  // the odd turns have no barrier
  }
  y[threadIdx.x] = v;
}
// race
KERNEL plain_counter(In x, Out y) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  n += (int)x[threadIdx.x] * 0 + threadIdx.x;  // BUG
  __syncthreads();
  y[threadIdx.x] = n;
}
// race
KERNEL matrix_before_barrier(In x, Out y) {
  __shared__ __align__(16) unsigned s[64];
  s[63 - threadIdx.x] = threadIdx.x;
  unsigned r;
  // BUG
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(address_of(s) + threadIdx.x % 8 * 16));
  y[threadIdx.x] = r;
}
// race
KERNEL barriers_of_other_numbers(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  if (threadIdx.x < 32)
    asm volatile("bar.sync 1, 32;" ::: "memory");
  y[threadIdx.x] = s[threadIdx.x ^ 1];  // BUG
}
// race
KERNEL transpose_without_barrier(In x, Out y) {
  __shared__ float s[8][9];
  s[threadIdx.x / 8][threadIdx.x % 8] = x[threadIdx.x];
  y[threadIdx.x] = s[threadIdx.x % 8][threadIdx.x / 8];  // BUG
}
// race
KERNEL volatile_tree(In x, Out y) {
  __shared__ volatile float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int o = 32; o > 0; o >>= 1) s[threadIdx.x] += s[threadIdx.x + o];  // BUG
  }
  __syncthreads();
  y[threadIdx.x] = s[0];
}
// race
KERNEL volatile_neighbour_overwritten(In x, Out y) {
  __shared__ volatile float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const float v = s[threadIdx.x ^ 1];
  s[threadIdx.x] = v + 1;  // BUG
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}

// ---- races between blocks of a cluster
__device__ float* across(float* p) {
  float* there;
  asm volatile("{\n .reg .u32 r;\n mov.u32 r, %%cluster_ctarank;\n xor.b32 r, r, 1;\n mapa.u64 %0, %1, r;\n}" : "=l"(there) : "l"(p));
  return there;
}
__device__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive;\n barrier.cluster.wait;" ::: "memory");
}
// race
KERNEL __cluster_dims__(2, 1, 1) block_barrier_for_a_cluster(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const float v = across(s)[threadIdx.x];  // BUG
  cluster_barrier();
  if (blockIdx.x == 0) y[threadIdx.x] = v;
}
// race
KERNEL __cluster_dims__(2, 1, 1) remote_write_without_word(In x, Out y) {
  __shared__ float s[64];
  cluster_barrier();
  across(s)[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  const float v = s[threadIdx.x];  // BUG
  cluster_barrier();
  if (blockIdx.x == 0) y[threadIdx.x] = v;
}
// race
KERNEL __cluster_dims__(2, 1, 1) overwritten_while_the_other_reads(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  cluster_barrier();
  const float v = across(s)[threadIdx.x];
  __syncthreads();
  s[threadIdx.x] = v + 1;  // BUG
  cluster_barrier();
  if (blockIdx.x == 0) y[threadIdx.x] = v;
}
__device__ void wait_parity(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n .reg .pred done;\nAGAIN:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n @!done bra AGAIN;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
// race
KERNEL __cluster_dims__(2, 1, 1) multicast_stage_given_back_to_one_block(In x, Out y) {
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long full, empty;
  const unsigned rank = blockIdx.x % 2;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&empty)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive;\n barrier.cluster.wait;" ::: "memory");
  float v = 0;
  for (int round = 0; threadIdx.x == 0 && round < 4; ++round) {
    if (round > 0) wait_parity(address_of(&empty), (round - 1) % 2);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(address_of(&full)) : "memory");
    // BUG
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" ::"r"(address_of(s + 32 * rank)), "l"(x + 32 * rank), "r"(address_of(&full)), "h"((short)3) : "memory");
  }
  for (int round = 0; threadIdx.x >= 32 && round < 4; ++round) {
    wait_parity(address_of(&full), round % 2);
    v += s[threadIdx.x - 32] + s[threadIdx.x];
    __syncwarp();
    if (threadIdx.x == 32) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&empty)) : "memory");
  }
  asm volatile("barrier.cluster.arrive;\n barrier.cluster.wait;" ::: "memory");
  if (blockIdx.x == 0) y[threadIdx.x] = v;
}
// out of bounds
KERNEL __cluster_dims__(2, 1, 1) ends_while_the_other_reads(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  cluster_barrier();
  if (blockIdx.x == 0) y[threadIdx.x] = across(s)[threadIdx.x];  // BUG
}

// ---- barriers
// divergent barrier
KERNEL barrier_in_branch(In x, Out y) {
  if (threadIdx.x % 32 < 16) __syncthreads();  // BUG
  y[threadIdx.x] = x[0];
}
// divergent barrier
KERNEL barrier_in_uneven_loop(In x, Out y) {
  for (int i = 0; i < threadIdx.x % 3 + 1; ++i)
    __syncthreads();  // BUG
  y[threadIdx.x] = x[0];
}
// divergent barrier
KERNEL barrier_number_beyond(In x, Out y) {
  asm volatile("barrier.sync %0;" ::"r"(16 + (int)(x[0] > 1e30f)) : "memory");  // BUG
  y[threadIdx.x] = 1;
}
// divergent barrier
KERNEL __cluster_dims__(2, 1, 1) cluster_barrier_in_branch(In x, Out y) {
  if (threadIdx.x % 2) asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");  // BUG
  y[threadIdx.x] = x[0];
}
// deadlock
KERNEL barrier_for_too_many(In x, Out y) {
  asm volatile("bar.sync 2, 96;" ::: "memory");  // BUG
  y[threadIdx.x] = x[0];
}
// deadlock
KERNEL barrier_of_one_warp(In x, Out y) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;" ::: "memory");  // BUG
  } else {
    asm volatile("bar.sync 2, 64;" ::: "memory");  // BUG
  }
  y[threadIdx.x] = x[0];
}
// deadlock
KERNEL __cluster_dims__(2, 1, 1) cluster_block_does_not_arrive(In x, Out y) {
  if (blockIdx.x == 0) {
    asm volatile("barrier.cluster.arrive;" ::: "memory");
    asm volatile("barrier.cluster.wait;" ::: "memory");  // BUG
  } else {
    asm volatile("bar.sync 3, 128;" ::: "memory");  // BUG
  }
  y[threadIdx.x] = x[0];
}
// deadlock
KERNEL syncwarp_for_absent_lanes(In x, Out y) {
  if (threadIdx.x % 32 < 16)
    asm volatile("barrier.sync 1, 64;" ::: "memory");  // BUG
  else
    __syncwarp();  // BUG
  y[threadIdx.x] = x[0];
}

// ---- shuffles and other collectives
// invalid warp-level operation
KERNEL shuffle_from_absent(In x, Out y) {
  if (threadIdx.x % 32 < 16)
    y[threadIdx.x] = __shfl_sync(0xffffu, x[threadIdx.x], 20);  // BUG
}
// invalid warp-level operation
KERNEL shuffle_not_named(In x, Out y) {
  y[threadIdx.x] = __shfl_xor_sync(0xffffu, x[threadIdx.x], 1);  // BUG
}
// invalid warp-level operation
KERNEL vote_not_named(In x, Out y) {
  y[threadIdx.x] = __ballot_sync(0x0000ffffu, x[threadIdx.x] > 0);  // BUG
}
// invalid warp-level operation
KERNEL match_not_named(In x, Out y) {
  y[threadIdx.x] = __match_any_sync(0x7fffffffu, threadIdx.x & 3);  // BUG
}
// invalid warp-level operation
KERNEL reduce_not_named(In x, Out y) {
  y[threadIdx.x] = __reduce_add_sync(0xfffffffeu, threadIdx.x);  // BUG
}
// invalid warp-level operation
KERNEL syncwarp_not_named(In x, Out y) {
  asm volatile("bar.warp.sync 0x0000ffff;" ::: "memory");  // BUG
  y[threadIdx.x] = x[0];
}
// invalid warp-level operation
KERNEL matrix_by_half_a_warp(In x, Out y) {
  extern __shared__ __align__(16) unsigned words[];
  for (int i = threadIdx.x; i < 256; i += 64) words[i] = i;
  __syncthreads();
  unsigned r = 0;
  if (threadIdx.x % 32 < 16)
    // BUG
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(address_of(words) + threadIdx.x % 8 * 16));
  y[threadIdx.x] = r;
}
// invalid warp-level operation
KERNEL product_by_half_a_warp(In x, Out y) {
  float c[4] = {0, 0, 0, 0};
  if (threadIdx.x % 32 >= 8)
    // BUG
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4}, {%4}, {%0,%1,%2,%3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(0x3c003c00));
  y[threadIdx.x] = c[0] + x[0];
}

// ---- asynchronous copies
// asynchronous copy in flight
KERNEL async_copy_not_waited(In x, Out y) {
  __shared__ __align__(16) float s[64];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s + threadIdx.x)), "l"(x + threadIdx.x) : "memory");
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];  // BUG
}
// asynchronous copy in flight
KERNEL async_group_too_many_left(In x, Out y) {
  __shared__ __align__(16) float s[2][64];
  for (int i = 0; i < 2; ++i) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s[i] + threadIdx.x)), "l"(x + threadIdx.x) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  __syncthreads();
  y[threadIdx.x] = s[1][threadIdx.x];  // BUG
}
// race
KERNEL async_copy_without_barrier(In x, Out y) {
  __shared__ __align__(16) float s[64];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s + threadIdx.x)), "l"(x + threadIdx.x) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  y[threadIdx.x] = s[63 - threadIdx.x];  // BUG
}
// asynchronous copy in flight
KERNEL async_matrix_not_waited(In x, Out y) {
  __shared__ __align__(16) float s[64];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s + threadIdx.x)), "l"(x + threadIdx.x) : "memory");
  __syncthreads();
  unsigned r;
  // BUG
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(address_of(s) + threadIdx.x % 8 * 16));
  y[threadIdx.x] = r;
}

// ---- traps
// trap
KERNEL explicit_trap(In x, Out y) {
  if (threadIdx.x == 5) __trap();  // BUG
  y[threadIdx.x] = x[0];
}
// trap
KERNEL mbarrier_too_many_arrivals(In x, Out y) {
  __shared__ unsigned long long b;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(address_of(&b)) : "memory");
  __syncthreads();
  // BUG
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 3;" ::"r"(address_of(&b)) : "memory");
  y[threadIdx.x] = x[0];
}
// trap
KERNEL null_function(In x, Out y) {
  typedef float (*Function)(float);
  Function f = (Function)(unsigned long long)(x[0] > 1e30f);
  y[threadIdx.x] = f(x[0]);  // BUG
}

// race
KERNEL bulk_store_without_proxy_fence(In x, Out y) {
  __shared__ __align__(16) float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    // BUG
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(y), "r"(address_of(s)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
// race
KERNEL overwrites_the_source_of_a_bulk_store(In x, Out y) {
  __shared__ __align__(16) float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(y), "r"(address_of(s)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    s[0] = 2.0f;  // BUG
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
// asynchronous copy in flight
KERNEL bulk_copy_not_waited_for(In x, Out y) {
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long b;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&b)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(address_of(&b)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(address_of(s)), "l"(x), "r"(address_of(&b)) : "memory");
  }
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];  // BUG
}

// ---- uninitialised global and local memory
// uninitialised global memory
KERNEL output_read_before_written(In x, Out y) { y[threadIdx.x] += x[threadIdx.x]; }  // BUG
// uninitialised global memory
// BUG
KERNEL accumulator_never_cleared(In x, Out y) { atomicAdd(y + threadIdx.x % 4, x[threadIdx.x]); }
// uninitialised global memory
KERNEL heap_read_before_written(In x, Out y) {
  float* p = (float*)malloc(64);
  y[threadIdx.x] = x[threadIdx.x] + *(volatile float*)(p + 3);  // BUG
  free(p);
}
// uninitialised global memory
KERNEL tail_of_output(In x, Out y) {
  if (threadIdx.x < 60) y[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) y[0] = y[62];  // BUG
}
// uninitialised global memory
KERNEL vector_of_unwritten(In x, Out y) {
  if (threadIdx.x < 32) y[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  float4 v = ((float4*)y)[threadIdx.x % 16];  // BUG
  if (v.x + v.y + v.z + v.w > 1e30f) y[0] = v.x;
}
// uninitialised global memory
KERNEL all_but_the_field_written(In x, Out y) {
  struct __align__(16) Item { float a, b, c; int count; };
  Item* items = (Item*)y;
  items[threadIdx.x % 16].count = 1;
  __syncthreads();
  // BUG
  const float sum = items[threadIdx.x % 16].a + items[threadIdx.x % 16].b + items[threadIdx.x % 16].c;
  if (sum > 1e30f) items[threadIdx.x % 16].count = 2;
}
// uninitialised global memory
KERNEL async_copy_of_unwritten(In x, Out y) {
  __shared__ __align__(16) float s[64];
  // BUG
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s + threadIdx.x)), "l"(y + threadIdx.x) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
}
// uninitialised local memory
KERNEL local_array_partly_written(In x, Out y) {
  volatile float a[16];
  for (int i = 0; i < 8; ++i) a[i] = x[i];
  y[threadIdx.x] = a[threadIdx.x & 15];  // BUG
}
// uninitialised local memory
KERNEL local_counts_never_cleared(In x, Out y) {
  volatile int counts[8];
  for (int i = 0; i < 8; ++i)
    counts[(int)(x[i] * 4) & 7]++;  // BUG
  y[threadIdx.x] = counts[threadIdx.x & 7];
}
// ---- uninitialised registers
// uninitialised register
KERNEL sum_never_started(In x, Out y) {
  float s;
  asm volatile("{\n .reg .f32 t;\n add.f32 %0, t, %1;\n}" : "=f"(s) : "f"(x[threadIdx.x]));
  y[threadIdx.x] = s;  // BUG
}
// uninitialised register
KERNEL set_on_one_path(In x, Out y) {
  float v;
  asm volatile("{\n .reg .f32 t;\n .reg .pred p;\n setp.lt.u32 p, %2, 40;\n @p mov.f32 t, %1;\n mov.f32 %0, t;\n}" : "=f"(v) : "f"(x[threadIdx.x]), "r"(threadIdx.x));
  y[threadIdx.x] = v;  // BUG
}
// uninitialised register
KERNEL branch_on_nothing(In x, Out y) {
  float v = x[threadIdx.x];
  // BUG
  asm volatile("{\n .reg .pred p;\n .reg .u32 t;\n setp.gt.u32 p, t, 3;\n @p add.f32 %0, %0, 0f3F800000;\n}" : "+f"(v));
  y[threadIdx.x] = v;
}
// uninitialised register
KERNEL index_never_set(In x, Out y) {
  unsigned i;
  asm volatile("{\n .reg .u32 t;\n mul.lo.u32 %0, t, 0;\n}" : "=r"(i));
  y[threadIdx.x] = x[i];  // BUG
}
// uninitialised register
KERNEL tile_set_on_one_path(In x, Out y) {
  __shared__ float s[64];
  float v;
  asm volatile("{\n .reg .f32 t;\n .reg .pred p;\n setp.lt.u32 p, %2, 40;\n @p mov.f32 t, %1;\n mov.f32 %0, t;\n}" : "=f"(v) : "f"(x[threadIdx.x]), "r"(threadIdx.x));
  s[threadIdx.x] = v;
  __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x] + 1;  // BUG
}
// uninitialised register
KERNEL index_through_shared(In x, Out y) {
  __shared__ unsigned s[64];
  unsigned i;
  asm volatile("{\n .reg .u32 t;\n mul.lo.u32 %0, t, 0;\n}" : "=r"(i));
  s[threadIdx.x] = i;
  __syncthreads();
  y[threadIdx.x] = x[s[63 - threadIdx.x]];  // BUG
}
// uninitialised register
KERNEL field_lost_before_the_copy(In x, Out y) {
  struct __align__(16) Item { float a, b, c, d; };
  __shared__ Item first[64], second[64];
  first[threadIdx.x].a = first[threadIdx.x].b = first[threadIdx.x].c = x[threadIdx.x];
  __syncthreads();
  second[threadIdx.x] = first[63 - threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = second[63 - threadIdx.x].d;  // BUG
}

// ---- races in global memory
// race
KERNEL global_exchange_without_barrier(In x, Out y) {
  static __device__ float g[2][64];
  g[blockIdx.x][threadIdx.x] = x[threadIdx.x] + 3;
  y[threadIdx.x] = g[blockIdx.x][63 - threadIdx.x];  // BUG
}
// race
KERNEL global_stencil_in_place(In x, Out y) {
  if (blockIdx.x > 0) return;
  y[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] += y[(threadIdx.x + 1) % 64] * 2 + 1;  // BUG
}
// race
KERNEL async_copy_of_unfinished_results(In x, Out y) {
  static __device__ float g[2][64];
  __shared__ __align__(16) float s[64];
  g[blockIdx.x][threadIdx.x] = x[threadIdx.x] + 5;  // BUG
  // BUG
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s + threadIdx.x)), "l"(g[blockIdx.x] + 63 - threadIdx.x) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
// race
KERNEL bulk_copy_of_unfinished_results(In x, Out y) {
  static __device__ __align__(16) float g[2][64];
  __shared__ __align__(16) float s[64];
  __shared__ unsigned long long b;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&b)) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  g[blockIdx.x][threadIdx.x] = x[threadIdx.x] + 5;  // BUG
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(address_of(&b)) : "memory");
    // BUG
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(address_of(s)), "l"(g[blockIdx.x]), "r"(address_of(&b)) : "memory");
  }
  asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra AGAIN;\n}" ::"r"(address_of(&b)) : "memory");
  y[threadIdx.x] = s[threadIdx.x];
}
// race
KERNEL blocks_write_one_place(In x, Out y) { y[threadIdx.x] = x[threadIdx.x] + blockIdx.x; }  // BUG
// race
KERNEL blocks_read_each_other(In x, Out y) {
  static __device__ float part[128];
  part[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x] + 2;
  __syncthreads();
  y[threadIdx.x] = part[(blockIdx.x ^ 1) * 64 + threadIdx.x];  // BUG
}
// race
KERNEL global_counter(In x, Out y) {
  static __device__ int n;
  if (threadIdx.x == 0) n = n + 1 + (int)(x[0] > 1e30f);  // BUG
}
// race
KERNEL last_block_without_fence(In x, Out y) {
  static __device__ float part[2];
  static __device__ unsigned done;
  __shared__ bool last;
  if (threadIdx.x == 0) {
    part[blockIdx.x] = x[0] + 1 + blockIdx.x;
    last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0)
    y[0] = part[0] + part[1];  // BUG
}
// race
KERNEL flag_without_fence(In x, Out y) {
  static __device__ float data;
  static __device__ volatile int ready;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data = x[0] + 5;
    ready = 1;
  } else {
    while (ready == 0) {
    }
    y[0] = data;  // BUG
  }
}
// race
KERNEL lock_without_fence(In x, Out y) {
  static __device__ int lock;
  static __device__ float total;
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    total = total + x[0] * x[0] + 1;  // BUG
    atomicExch(&lock, 0);
  }
}
// race
KERNEL fence_before_the_write(In x, Out y) {
  static __device__ float part[2];
  static __device__ unsigned done;
  if (threadIdx.x == 0) {
    __threadfence();
    part[blockIdx.x] = x[0] + 1 + blockIdx.x;
    if (atomicInc(&done, gridDim.x - 1) == gridDim.x - 1)
      y[0] = part[0] + part[1];  // BUG
  }
}
// race
KERNEL next_element_overwritten(In x, Out y) {
  static __device__ float data[192];
  const int i = blockIdx.x * 64 + threadIdx.x;
  const float next = data[i + 1];
  data[i] = next + i + 1;  // BUG
}
// race
KERNEL syncwarp_for_global(In x, Out y) {
  static __device__ float g[2][64];
  g[blockIdx.x][threadIdx.x] = x[threadIdx.x] * x[threadIdx.x] + 1;
  __syncwarp();
  y[threadIdx.x] = g[blockIdx.x][63 - threadIdx.x];  // BUG
}

// ---- ordinary accesses and atomics in shared memory
// race
KERNEL counter_cleared_late(In x, Out y) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;               // BUG
  if (x[threadIdx.x] > 0) atomicAdd(&n, 1);  // BUG
  __syncthreads();
  y[threadIdx.x] = n;
}
// race
KERNEL counter_read_early(In x, Out y) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  if (x[threadIdx.x] > 0) atomicAdd(&n, 1);
  if (threadIdx.x == 0) y[0] = n;  // BUG
}
// race
KERNEL bins_cleared_late(In x, Out y) {
  __shared__ int bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;  // BUG
  __syncwarp();
  atomicAdd(bins + threadIdx.x * 7 % 16, 1);  // BUG
  __syncthreads();
  y[threadIdx.x] = bins[threadIdx.x % 16];
}
// race
KERNEL bins_read_early(In x, Out y) {
  __shared__ int bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(bins + threadIdx.x * 7 % 16, 1);  // BUG
  y[threadIdx.x] = bins[threadIdx.x % 16];    // BUG
}
// race
KERNEL fence_before_the_clear_is_seen(In x, Out y) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;  // BUG
  __threadfence_block();
  if (x[threadIdx.x] > 0) atomicAdd(&n, 1);  // BUG
  __syncthreads();
  y[threadIdx.x] = n;
}
// race
KERNEL counter_set_among_the_atomics(In x, Out y) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  atomicAdd(&n, 1);              // BUG
  if (threadIdx.x == 63) n = 7;  // BUG
  __syncthreads();
  y[threadIdx.x] = n;
}
// race
KERNEL counter_reset_while_read(In x, Out y) {
  __shared__ int n;
  float v = 0;
  for (int i = 0; i < 3; ++i) {
    if (threadIdx.x == 0) n = 0;  // BUG
    __syncthreads();
    atomicAdd(&n, i + 1);
    __syncthreads();
    v += n;  // BUG
  }
  y[threadIdx.x] = v;
}
// race
KERNEL copies_then_atomics(In x, Out y) {
  __shared__ __align__(16) int s[64];
  // BUG
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address_of(s + threadIdx.x)),
               "l"(x + threadIdx.x)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  atomicAdd(s + (threadIdx.x ^ 1), 1);  // BUG
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}
// race
KERNEL vector_read_of_counters(In x, Out y) {
  __shared__ __align__(16) int n[64];
  n[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(n + (threadIdx.x * 5 & 63), 1);          // BUG
  const int4 v = *(int4*)(n + threadIdx.x / 4 * 4);  // BUG
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
// race
KERNEL lock_without_fence_in_shared(In x, Out y) {
  __shared__ int lock, n;
  if (threadIdx.x == 0) lock = n = 0;
  __syncthreads();
  bool done = false;
  while (!done) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      n = n + 1;  // BUG
      atomicExch(&lock, 0);
      done = true;
    }
  }
  __syncthreads();
  y[threadIdx.x] = n + x[0];
}
// uninitialised shared memory
KERNEL maximum_of_nothing(In x, Out y) {
  __shared__ int most;
  atomicMax(&most, (int)x[threadIdx.x]);  // BUG
  __syncthreads();
  y[threadIdx.x] = most;
}
// uninitialised shared memory
KERNEL minimum_started_by_the_other_warp(In x, Out y) {
  __shared__ int least[2];
  if (threadIdx.x == 0) least[1] = 9;
  __syncthreads();
  atomicMin(least + threadIdx.x / 32, (int)x[threadIdx.x]);  // BUG
  __syncthreads();
  y[threadIdx.x] = least[threadIdx.x / 32];
}

// ---- fences, volatile accesses and flags within a block
// race
KERNEL fence_for_syncwarp(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];  // BUG
  asm volatile("fence.acq_rel.cta;" ::: "memory");
  y[threadIdx.x] = s[threadIdx.x ^ 1];  // BUG
}
// race
KERNEL fence_for_a_barrier(In x, Out y) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];  // BUG
  __threadfence();
  y[threadIdx.x] = s[63 - threadIdx.x];  // BUG
}
// race
KERNEL fence_for_a_barrier_in_a_loop(In x, Out y) {
  __shared__ float s[2][64];
  float v = x[threadIdx.x];
  for (int i = 0; i < 4; ++i) {
    s[i & 1][threadIdx.x] = v;  // BUG
    if (i % 2)
      __syncthreads();
    else
      __threadfence_block();
    v = s[i & 1][threadIdx.x ^ 32] + 1;  // BUG
  }
  y[threadIdx.x] = v;
}
// race
KERNEL volatile_for_a_barrier(In x, Out y) {
  __shared__ volatile float s[64];
  s[threadIdx.x] = x[threadIdx.x];       // BUG
  y[threadIdx.x] = s[threadIdx.x ^ 32];  // BUG
}
// race
KERNEL volatile_and_fence_for_a_barrier(In x, Out y) {
  __shared__ volatile float s[64];
  s[threadIdx.x] = x[threadIdx.x];  // BUG
  __threadfence_block();
  y[threadIdx.x] = s[threadIdx.x ^ 32] * 2;  // BUG
}
// race
KERNEL volatile_vectors_for_a_barrier(In x, Out y) {
  __shared__ __align__(16) float s[64];
  const unsigned to = address_of(s + threadIdx.x), from = address_of(s + ((threadIdx.x ^ 32) & ~1));
  float a, b;
  // BUG
  asm volatile("st.volatile.shared.f32 [%0], %1;" ::"r"(to), "f"(x[threadIdx.x]) : "memory");
  // BUG
  asm volatile("ld.volatile.shared.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "r"(from) : "memory");
  y[threadIdx.x] = a + b;
}
// race
KERNEL flag_without_fence_in_shared(In x, Out y) {
  __shared__ volatile int ready;
  __shared__ float s[32];
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    s[threadIdx.x] = x[threadIdx.x];  // BUG
    __syncwarp();
    if (threadIdx.x == 0) ready = 1;
  } else {
    while (ready == 0) {
    }
    y[threadIdx.x] = s[threadIdx.x - 32];  // BUG
  }
}
// race
KERNEL flag_of_one_lane_for_all(In x, Out y) {
  __shared__ volatile int ready;
  __shared__ float s[32];
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    s[threadIdx.x] = x[threadIdx.x];  // BUG
    __threadfence_block();
    if (threadIdx.x == 0) ready = 1;
  } else {
    while (ready == 0) {
    }
    __threadfence_block();
    y[threadIdx.x] = s[threadIdx.x - 32];  // BUG
  }
}
// race
KERNEL flag_by_an_ordinary_store(In x, Out y) {
  __shared__ int ready;
  __shared__ float s;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    s = x[0];
    __threadfence_block();
    ready = 1;  // BUG
  } else if (threadIdx.x == 32) {
    while (*(volatile int*)&ready == 0) {  // BUG
    }
    __threadfence_block();
    y[0] = s;
  }
}
// race
KERNEL barrier_that_one_warp_only_reaches(In x, Out y) {
  __shared__ float s[64];
  if (threadIdx.x < 32) {
    s[threadIdx.x] = x[threadIdx.x];
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    y[threadIdx.x] = s[threadIdx.x + 32];  // BUG
  } else {
    s[threadIdx.x] = x[threadIdx.x] * 2;  // BUG
    asm volatile("bar.sync 1, 64;" ::: "memory");
    y[threadIdx.x] = s[threadIdx.x - 32];
  }
}
// race
KERNEL mbarrier_full_by_one_lane(In x, Out y) {
  __shared__ unsigned long long full;
  __shared__ float s[32];
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&full)) : "memory");
  __syncthreads();
  if (threadIdx.x < 32) {
    s[threadIdx.x] = x[threadIdx.x];  // BUG
    if (threadIdx.x == 0)
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&full)) : "memory");
  } else {
    wait_parity(address_of(&full), 0);
    y[threadIdx.x] = s[63 - threadIdx.x];  // BUG
  }
}
// race
KERNEL mbarrier_empty_by_one_lane(In x, Out y) {
  __shared__ unsigned long long full, empty;
  __shared__ float s[32];
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(address_of(&full)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&empty)) : "memory");
  }
  __syncthreads();
  float v = 0;
  for (int i = 0; i < 3; ++i) {
    if (threadIdx.x < 32) {
      if (i > 0) wait_parity(address_of(&empty), (i - 1) & 1);
      s[threadIdx.x] = x[threadIdx.x] + i;  // BUG
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&full)) : "memory");
    } else {
      wait_parity(address_of(&full), i & 1);
      v += s[63 - threadIdx.x];  // BUG
      if (threadIdx.x == 32)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&empty))
                     : "memory");
    }
  }
  if (threadIdx.x >= 32) y[threadIdx.x] = v;
}
// race
KERNEL stage_given_back_by_one_lane(In x, Out y) {
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
      // BUG
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, "
          "[%2];" ::"r"(address_of(s)),
          "l"(x), "r"(address_of(&full))
          : "memory");
    } else if (threadIdx.x >= 32) {
      wait_parity(address_of(&full), i & 1);
      v += s[63 - threadIdx.x];  // BUG
      if (threadIdx.x == 32)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(&empty))
                     : "memory");
    }
  }
  if (threadIdx.x >= 32) y[threadIdx.x] = v;
}

// ---- ordinary accesses and atomics in global memory
// race
KERNEL global_counter_cleared_late(In x, Out y) {
  static __device__ int n[2] = {5, 5};
  if (threadIdx.x == 0) n[blockIdx.x] = 0;               // BUG
  if (x[threadIdx.x] > 0) atomicAdd(n + blockIdx.x, 1);  // BUG
}
// race
KERNEL zero_cleared_late(In x, Out y) {
  static __device__ int n[2];
  if (threadIdx.x == 0) n[blockIdx.x] = 0;               // BUG
  if (x[threadIdx.x] > 0) atomicAdd(n + blockIdx.x, 1);  // BUG
}
// race
KERNEL global_counter_read_early(In x, Out y) {
  static __device__ int n[2];
  if (x[threadIdx.x] > 0) atomicAdd(n + blockIdx.x, 1);  // BUG
  if (threadIdx.x == 0) y[blockIdx.x] = n[blockIdx.x];   // BUG
}
// race
KERNEL counter_of_all_blocks_read_early(In x, Out y) {
  static __device__ int n;
  if (x[threadIdx.x] > 0) atomicAdd(&n, 1);  // BUG
  __syncthreads();
  if (threadIdx.x == 0 && blockIdx.x == 0) y[0] = n;  // BUG
}
// race
KERNEL counter_cleared_while_others_count(In x, Out y) {
  static __device__ int n = 3;
  if (blockIdx.x == 0 && threadIdx.x == 0) n = 0;  // BUG
  __syncthreads();
  atomicAdd(&n, 1);  // BUG
}
// race
KERNEL sums_by_vectors_read_early(In x, Out y) {
  static __device__ __align__(16) float sum[2][64];
  // BUG
  asm volatile(
      "red.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(sum[blockIdx.x] + threadIdx.x % 16 * 4),
      "f"(x[threadIdx.x])
      : "memory");
  const float v = sum[blockIdx.x][threadIdx.x];  // BUG
  if (v > 1e30f) y[0] = v;
}
// race
KERNEL counter_of_block_scope(In x, Out y) {
  static __device__ int n;
  atomicAdd_block(&n, (int)x[0] + 1);  // BUG
}
// uninitialised global memory
KERNEL minimum_never_started(In x, Out y) {
  atomicMin((int*)y + threadIdx.x % 4, (int)x[threadIdx.x]);  // BUG
}
// uninitialised global memory
KERNEL maximum_kept_from_before(In x, Out y) {
  float m = y[threadIdx.x];  // BUG
  for (int i = 0; i < 4; ++i) m = fmaxf(m, x[(threadIdx.x + i) & 63]);
  y[threadIdx.x] = m;
}

// ---- exchange between blocks
// race
KERNEL fence_after_the_flag(In x, Out y) {
  static __device__ float w[64];
  static __device__ unsigned flag;
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x] * 3;  // BUG
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(&flag, 12345u);
  } else {
    if (threadIdx.x == 0)
      while (atomicAdd(&flag, 0) != 12345u) {
      }
    __syncthreads();
  }
  __threadfence();
  if (blockIdx.x == 1) y[threadIdx.x] = w[63 - threadIdx.x];  // BUG
}
// race
KERNEL fence_of_the_block_for_another(In x, Out y) {
  static __device__ float data;
  static __device__ int ready;
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    data = x[0] + 5;  // BUG
    __threadfence_block();
    atomicExch(&ready, 1);
  } else {
    while (atomicAdd(&ready, 0) == 0) {
    }
    y[0] = data;  // BUG
  }
}
// race
KERNEL signal_before_the_other_warp_wrote(In x, Out y) {
  static __device__ float w[64];
  static __device__ int ready;
  if (blockIdx.x == 0) {
    w[threadIdx.x] = x[threadIdx.x] * 3;  // BUG
    __threadfence();
    if (threadIdx.x == 0) atomicExch(&ready, 1);
  } else {
    while (*(volatile int*)&ready == 0) {
    }
    __threadfence();
    y[threadIdx.x] = w[63 - threadIdx.x];  // BUG
  }
}
// race
KERNEL relaxed_flag(In x, Out y) {
  static __device__ float data[64];
  static __device__ int ready;
  if (blockIdx.x == 0) {
    data[threadIdx.x] = x[threadIdx.x] + 7;  // BUG
    __syncthreads();
    if (threadIdx.x == 0)
      asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(&ready) : "memory");
  } else {
    int v;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(&ready) : "memory");
    } while (v == 0);
    y[threadIdx.x] = data[63 - threadIdx.x];  // BUG
  }
}
// race
KERNEL reads_the_other_block_at_once(In x, Out y) {
  static __device__ volatile float part[128];
  const int i = blockIdx.x * 64 + threadIdx.x;
  part[i] = x[threadIdx.x] * 2 + i;      // BUG
  const float v = part[(i + 64) % 128];  // BUG
  if (blockIdx.x == 1) y[threadIdx.x] = v;
}
// race
KERNEL reads_the_other_block_after_a_fence(In x, Out y) {
  static __device__ volatile float part[128];
  const int i = blockIdx.x * 64 + threadIdx.x;
  part[i] = x[threadIdx.x] * 2 + i;  // BUG
  __threadfence();
  __syncthreads();
  const float v = part[(i + 64) % 128];  // BUG
  if (blockIdx.x == 1) y[threadIdx.x] = v;
}
// race
KERNEL volatile_scratch_without_barrier(In x, Out y) {
  static __device__ volatile float w[2][64];
  w[blockIdx.x][threadIdx.x] = x[threadIdx.x] + 1;   // BUG
  y[threadIdx.x] = w[blockIdx.x][threadIdx.x ^ 32];  // BUG
}
// race
KERNEL read_only_load_of_an_own_result(In x, Out y) {
  static __device__ float g[2][64];
  g[blockIdx.x][threadIdx.x] = x[threadIdx.x] * 2 + 1;  // BUG
  float v;
  // BUG
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(g[blockIdx.x] + threadIdx.x));
  y[threadIdx.x] = v + 1;
}
// race
KERNEL read_only_load_behind_a_barrier(In x, Out y) {
  static __device__ float g[2][64];
  g[blockIdx.x][threadIdx.x] = x[threadIdx.x] * 2 + 1;  // BUG
  __syncthreads();
  y[threadIdx.x] = __ldg(g[blockIdx.x] + 63 - threadIdx.x);  // BUG
}
// race
KERNEL read_only_vector_load(In x, Out y) {
  static __device__ __align__(16) float g[2][64];
  g[blockIdx.x][threadIdx.x] = x[threadIdx.x] * 2 + 1;  // BUG
  __syncthreads();
  const float4 v = __ldg((const float4*)g[blockIdx.x] + threadIdx.x % 16);  // BUG
  if (v.x > 1e30f) y[0] = v.y;
}

// ---- atomics in a cluster
// race
KERNEL __cluster_dims__(2, 1, 1) remote_counter_cleared_late(In x, Out y) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;  // BUG
  __syncthreads();
  if (blockIdx.x == 1) atomicAdd((int*)across((float*)&n), 1);  // BUG
  cluster_barrier();
  if (blockIdx.x == 0) y[threadIdx.x] = n;
}
// race
KERNEL __cluster_dims__(2, 1, 1) remote_counter_read_early(In x, Out y) {
  __shared__ int n;
  if (threadIdx.x == 0) n = 0;
  cluster_barrier();
  atomicAdd((int*)across((float*)&n), 1);  // BUG
  __syncthreads();
  const int v = n;  // BUG
  cluster_barrier();
  if (blockIdx.x == 0) y[threadIdx.x] = v;
}

// ---- values of absent lanes that are used
// invalid warp-level operation
KERNEL part_of_a_warp_summed(In x, Out y) {
  float v = x[threadIdx.x];
  if (threadIdx.x % 32 < 12) {
    for (int o = 8; o; o >>= 1) v += __shfl_down_sync(0xfffu, v, o);  // BUG
    if (threadIdx.x % 32 == 0) y[threadIdx.x] = v;
  }
}
// invalid warp-level operation
KERNEL absent_value_selected(In x, Out y) {
  float v = x[threadIdx.x];
  if (threadIdx.x % 32 < 16) {
    const float w = __shfl_sync(0xffffu, v, 20 + threadIdx.x % 4);  // BUG
    y[threadIdx.x] = threadIdx.x % 32 < 8 ? w : v;
  }
}
// invalid warp-level operation
KERNEL absent_value_decides(In x, Out y) {
  int v = (int)(x[threadIdx.x] * 100);
  if (threadIdx.x % 32 < 16) {
    v = __shfl_down_sync(0xffffu, v, 8);  // BUG
    if (v > 7) y[threadIdx.x] = 1;
  }
}
// invalid warp-level operation
KERNEL shuffles_of_two_masks(In x, Out y) {
  float v = x[threadIdx.x], w;
  if (threadIdx.x % 32 < 16)
    w = __shfl_xor_sync(0xffffffffu, v * 3, 16) - 1;  // BUG
  else
    w = __shfl_xor_sync(0xffff0000u, v + 7, 16) * 2;  // BUG
  y[threadIdx.x] = w;
}
