// Shared by the row kernels. A row of COLS elements belongs to THREADS_PER_ROW threads; a block serves ROWS_PER_BLOCK rows.
// Thread t owns the vectors at (chunk * THREADS_PER_ROW + t) * VEC.
// With CLUSTER > 1 the blocks of a cluster share one row: each has PART of its columns.
constexpr int BLOCK = THREADS_PER_ROW * ROWS_PER_BLOCK;
constexpr int PART = COLS / CLUSTER;
constexpr int CHUNKS = (PART + THREADS_PER_ROW * VEC - 1) / (THREADS_PER_ROW * VEC);
constexpr bool EXACT = CHUNKS * THREADS_PER_ROW * VEC == PART;  // no thread looks beyond its part
#define GROUP ((long long)(blockIdx.x / CLUSTER))
#define GROUPS ((long long)(gridDim.x / CLUSTER))
#define OFFSET ((blockIdx.x % CLUSTER) * PART)
constexpr int WARPS_PER_ROW = THREADS_PER_ROW > 32 ? THREADS_PER_ROW / 32 : 1;

__device__ __forceinline__ float to_float(float v) { return v; }
__device__ __forceinline__ float to_float(__half v) { return __half2float(v); }
__device__ __forceinline__ float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }
template <class To> __device__ __forceinline__ To from_float(float v);
template <> __device__ __forceinline__ float from_float<float>(float v) { return v; }
template <> __device__ __forceinline__ __half from_float<__half>(float v) { return __float2half_rn(v); }
template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float v) { return __float2bfloat16_rn(v); }

/// VEC elements moved by one instruction. The raw words keep the compiler from splitting the access.
template <int BYTES> struct Raw;
template <> struct Raw<2> { typedef unsigned short type; };
template <> struct Raw<4> { typedef unsigned int type; };
template <> struct Raw<8> { typedef uint2 type; };
template <> struct Raw<16> { typedef uint4 type; };
struct Vector {
  union {
    typename Raw<VEC * sizeof(T)>::type raw;
    T element[VEC];
  };
  __device__ Vector() {}
  __device__ Vector(const Vector& other) : raw(other.raw) {}
  __device__ Vector& operator=(const Vector& other) {
    raw = other.raw;
    return *this;
  }
};

__device__ __forceinline__ Vector load(const T* at) {
  Vector v;
  v.raw = STREAM ? __ldcs((const typename Raw<VEC * sizeof(T)>::type*)at) : *(const typename Raw<VEC * sizeof(T)>::type*)at;
  return v;
}
__device__ __forceinline__ void store(T* at, const Vector& v) {
  if (STREAM) __stcs((typename Raw<VEC * sizeof(T)>::type*)at, v.raw);
  else *(typename Raw<VEC * sizeof(T)>::type*)at = v.raw;
}

struct Sum { static __device__ __forceinline__ float of(float a, float b) { return a + b; } };
// NaN wins: the maximum of a row with a NaN is NaN.
struct Max { static __device__ __forceinline__ float of(float a, float b) { return (a > b || a != a) ? a : b; } };

#if CLUSTER > 1
__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// Combines one value per block over the cluster through distributed shared memory.
template <class Op>
__device__ __forceinline__ float cluster_reduce(float v, int slot) {
  __shared__ float mine[2];
  if (threadIdx.x == 0) mine[slot] = v;
  cluster_barrier();
  const unsigned local = (unsigned)__cvta_generic_to_shared(&mine[slot]);
  float all = 0;
#pragma unroll
  for (int rank = 0; rank < CLUSTER; ++rank) {
    unsigned remote;
    float part;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(part) : "r"(remote));
    all = rank == 0 ? part : Op::of(all, part);
  }
  return all;
}
#endif

/// All threads of the row get the combined value. `slot` alternates, so that one barrier per reduction is enough.
template <class Op>
__device__ __forceinline__ float row_reduce(float v, int row_in_block, int t, int slot) {
#pragma unroll
  for (int offset = (THREADS_PER_ROW < 32 ? THREADS_PER_ROW : 32) / 2; offset > 0; offset /= 2) v = Op::of(v, __shfl_xor_sync(0xffffffffu, v, offset));
  if (WARPS_PER_ROW > 1) {
    __shared__ float part[2][ROWS_PER_BLOCK][WARPS_PER_ROW];
    if (t % 32 == 0) part[slot][row_in_block][t / 32] = v;
    __syncthreads();
    v = part[slot][row_in_block][0];
#pragma unroll
    for (int w = 1; w < WARPS_PER_ROW; ++w) v = Op::of(v, part[slot][row_in_block][w]);
  }
#if CLUSTER > 1
  v = cluster_reduce<Op>(v, slot);
#endif
  return v;
}

__device__ __forceinline__ bool inside(int col) { return EXACT || col < PART; }

/// No block may end while another of its cluster can still read its shared memory.
__device__ __forceinline__ void leave() {
#if CLUSTER > 1
  cluster_barrier();
#endif
}
