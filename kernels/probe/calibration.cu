// Kernels that show one constant of the time model each, as the difference between two numbers of
// rounds. Every chain of operations hangs together, so that one warp waits for each. `sink` is
// never written, which ptxas must not be able to tell.

#define CHAIN(name, declare, step, result)                      \
  extern "C" __global__ void name(int rounds, unsigned* sink) { \
    declare;                                                    \
    _Pragma("unroll 1") for (int r = 0; r < rounds; ++r) {      \
      _Pragma("unroll") for (int i = 0; i < 16; ++i) { step; }  \
    }                                                           \
    if ((result) == 0x12345678u) *sink = 1;                     \
  }

// A multiply-add and a logical operation.
CHAIN(cal_step, float f = threadIdx.x + 1.5f;
      unsigned u = rounds,
      asm volatile("{.reg .f32 t; fma.rn.f32 t, %0, 0f3F7FFFFF, 0f3A83126F; mov.b32 %1, t; xor.b32 "
                   "%1, %1, 1; mov.b32 %0, %1;}" : "+f"(f),
                   "+r"(u)),
      u)
CHAIN(cal_special, float f = threadIdx.x + 1.5f,
      asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(f)), __float_as_uint(f))
CHAIN(cal_fp64, double d = threadIdx.x + 1.5, asm volatile("fma.rn.f64 %0, %0, %0, %0;" : "+d"(d)),
      (unsigned)__double2loint(d))
CHAIN(cal_shuffle, unsigned u = threadIdx.x,
      asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+r"(u)), u)
CHAIN(cal_rounded, float f = threadIdx.x + 1.5f, asm volatile("sqrt.rn.f32 %0, %0;" : "+f"(f)),
      __float_as_uint(f))
CHAIN(cal_barrier, unsigned u = 0, __syncthreads(), u)
#if __CUDA_ARCH__ >= 800
CHAIN(cal_tensor, float c[4] = {};
      unsigned a = 0x3f803f80u + threadIdx.x,
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                   "{%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};" : "+f"(c[0]),
                   "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a)),
      __float_as_uint(c[0]))
#endif
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) cal_cluster(int rounds, unsigned*) {
#pragma unroll 1
  for (int r = 0; r < rounds * 16; ++r)
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
// Each copy of 128 bytes is waited for before the next begins.
extern "C" __global__ void cal_bulk(int rounds, unsigned* sink, const unsigned* from) {
  __shared__ alignas(128) unsigned data[32];
  __shared__ alignas(8) unsigned long long arrived;
  const unsigned to = (unsigned)__cvta_generic_to_shared(data),
                 barrier = (unsigned)__cvta_generic_to_shared(&arrived);
  asm volatile("mbarrier.init.shared.b64 [%0], 1;\nfence.proxy.async;" ::"r"(barrier) : "memory");
#pragma unroll 1
  for (int r = 0; r < rounds * 16; ++r) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], 128, "
        "[%0];" ::"r"(barrier),
        "r"(to), "l"(from)
        : "memory");
    asm volatile(
        "{.reg .pred p;\nWAIT: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra WAIT;}" ::
            "r"(barrier),
        "r"(r & 1)
        : "memory");
  }
  if (data[0] == 0x12345678u) *sink = 1;
}

// Barriers in shared memory that two threads, of one block or of two of a cluster, tell each other
// by; and a wait for nothing.
#define AWAIT_PHASE(barrier, parity)                                                              \
  asm volatile(                                                                                   \
      "{.reg .pred p;\nWAIT: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra WAIT;}" :: \
          "r"(barrier),                                                                           \
      "r"(parity)                                                                                 \
      : "memory")
extern "C" __global__ void cal_phase(int rounds, unsigned*) {
  __shared__ alignas(8) unsigned long long arrived;
  const unsigned barrier = (unsigned)__cvta_generic_to_shared(&arrived);
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier) : "memory");
#pragma unroll 1
  for (int r = 0; r < rounds * 16; ++r) AWAIT_PHASE(barrier, 1);
}
extern "C" __global__ void cal_arrival(int rounds, unsigned*) {
  __shared__ alignas(8) unsigned long long arrived[2];
  const unsigned first = (unsigned)__cvta_generic_to_shared(arrived), me = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(first + me * 8) : "memory");
  __syncthreads();
  if (threadIdx.x % 32 != 0) return;
#pragma unroll 1
  for (int r = 0; r < rounds * 16; ++r) {
    if (me == 1) AWAIT_PHASE(first + 8, r & 1);
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(first + (1 - me) * 8) : "memory");
    if (me == 0) AWAIT_PHASE(first, r & 1);
  }
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) cal_remote_arrival(int rounds, unsigned*) {
  __shared__ alignas(8) unsigned long long arrived;
  const unsigned mine = (unsigned)__cvta_generic_to_shared(&arrived), me = blockIdx.x;
  unsigned other;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(mine), "r"(1 - me));
  asm volatile(
      "mbarrier.init.shared.b64 [%0], 1;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;" ::"r"(
          mine)
      : "memory");
#pragma unroll 1
  for (int r = 0; r < rounds * 16; ++r) {
    if (me == 1) AWAIT_PHASE(mine, r & 1);
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(other) : "memory");
    if (me == 0) AWAIT_PHASE(mine, r & 1);
  }
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

// Loads from the other block of a cluster: each waited for; eight warps with sixteen on the way.
__device__ unsigned neighbours(const unsigned* data) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"((unsigned)__cvta_generic_to_shared(data)), "r"(blockIdx.x % 2 ^ 1));
  return there;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) cal_remote(int rounds, unsigned* sink) {
  __shared__ unsigned data[32];
  data[threadIdx.x % 32] = 0;
  unsigned at = neighbours(data);
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      unsigned v;
      asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(at));
      at += v;
    }
  }
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
  if (at == 0x12345678u) *sink = 1;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) cal_remote_busy(int rounds, unsigned* sink) {
  __shared__ unsigned data[32 * 16];
  for (int i = threadIdx.x; i < 32 * 16; i += blockDim.x) data[i] = i;
  const unsigned at = neighbours(data) + threadIdx.x % 32 * 4;
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
  unsigned sum = 0;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
    unsigned v[16];
#pragma unroll
    // values that do not change are loaded once
    for (int i = 0; i < 16; ++i)
      asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v[i]) : "r"(at + (i + r) % 16 * 128));
#pragma unroll
    for (int i = 0; i < 16; ++i) sum = sum * 3 + v[i];
  }
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
  if (sum == 0x12345678u) *sink = 1;
}
#endif

// Each address depends on the value read there, which is zero.
extern "C" __global__ void cal_shared(int rounds, unsigned* sink) {
  __shared__ unsigned data[32];
  data[threadIdx.x % 32] = 0;
  __syncthreads();
  unsigned at = (unsigned)__cvta_generic_to_shared(data);
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      unsigned v;
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at));
      at += v;
    }
  }
  if (at == 0x12345678u) *sink = 1;
}
extern "C" __global__ void cal_l1(int rounds, unsigned* sink, const unsigned* zeros) {
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      unsigned v;
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(zeros));
      zeros += v;
    }
  }
  if (zeros == nullptr) *sink = 1;
}
// A loop of nothing but its counter: an addition, a comparison, and the way from the predicate to
// the next round.
extern "C" __global__ void cal_branch(int rounds, unsigned* sink) {
  unsigned i;  // a counter that nobody asks for would take the loop with it
  asm volatile(
      "{.reg .pred p; mov.u32 %0, 0;\nLOOP: .pragma \"nounroll\"; add.u32 %0, %0, 1; setp.lt.u32 "
      "p, %0, %1; @p bra LOOP;}"
      : "=&r"(i)
      : "r"(rounds * 16));
  if (i == 0x12345678u) *sink = 1;
}

/// Sixteen bytes per thread and step; `reuse`: every block reads all of it, from L2, else each byte
/// is read once.
extern "C" __global__ void __launch_bounds__(256)
    cal_read(const uint4* from, unsigned n, int rounds, unsigned* sink, int reuse) {
  unsigned sum = 0;
  const unsigned step = (reuse ? 1 : gridDim.x) * 1024u;
  for (int round = 0; round < rounds; ++round) {
    unsigned base = reuse ? (blockIdx.x * 7919u + round) * 1024u % n : blockIdx.x * 1024u;
    for (unsigned i = 0; i < n; i += step) {
      uint4 v[4];
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const uint4* at = from + base + u * 256 + threadIdx.x;
        asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(v[u].x), "=r"(v[u].y), "=r"(v[u].z), "=r"(v[u].w)
                     : "l"(at));
      }
#pragma unroll
      for (int u = 0; u < 4; ++u) sum ^= v[u].x ^ v[u].w;
      base += step;
      if (base >= n) base -= n;
    }
  }
  if (sum == 0x12345678u) *sink = sum;
}

#if __CUDA_ARCH__ >= 800
/// Every block copies all of it to shared memory asynchronously, eight parts on the way; `together`
/// of them side by side.
extern "C" __global__ void __launch_bounds__(256)
    cal_copy(const uint4* from, unsigned n, int rounds, unsigned* sink, unsigned together) {
  __shared__ uint4 parts[8][256];
  for (int round = 0; round < rounds; ++round) {
    unsigned base = (blockIdx.x / together * 7919u + round) * 1024u % n;
    for (unsigned i = 0; i < n; i += 256) {
      const unsigned to = (unsigned)__cvta_generic_to_shared(&parts[i / 256 % 8][threadIdx.x]);
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;\ncp.async.commit_group;\ncp.async.wait_group "
          "7;" ::"r"(to),
          "l"(from + base + threadIdx.x));
      base += 256;
      if (base >= n) base -= n;
    }
  }
  asm volatile("cp.async.wait_all;");
  if (parts[0][threadIdx.x].x == 0x12345678u) *sink = 1;
}
#endif

/// Instructions in a row that run once.
template <int N>
__device__ void straight(float a, unsigned* sink) {
  float c[4] = {a, a + 1, a + 2, a + 3};
#pragma unroll
  for (int i = 0; i < N / 4; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) asm volatile("fma.rn.f32 %0, %0, %1, %0;" : "+f"(c[k]) : "f"(a));
  }
  if (c[0] + c[1] + c[2] + c[3] == 1.2345f) *sink = 1;
}
extern "C" __global__ void cal_code_64(float a, unsigned* sink) { straight<64>(a, sink); }
extern "C" __global__ void cal_code_1024(float a, unsigned* sink) { straight<1024>(a, sink); }
extern "C" __global__ void cal_code_8192(float a, unsigned* sink) { straight<8192>(a, sink); }
extern "C" __global__ void cal_empty() {}
