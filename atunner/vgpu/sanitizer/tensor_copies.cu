// Boxes of tensors between global and shared memory by tensor maps, one copy a block: tensor_copy_cases.cpp runs these.
struct alignas(64) Map {
  unsigned char bytes[128];
};
struct Corner {
  int at[5];
  int offsets[3];  // of im2col
};

__device__ unsigned address_of(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

#define COORDINATES_1 "{%2}"
#define COORDINATES_2 "{%2, %3}"
#define COORDINATES_3 "{%2, %3, %4}"
#define COORDINATES_4 "{%2, %3, %4, %5}"
#define COORDINATES_5 "{%2, %3, %4, %5, %6}"
#define OFFSETS_3 "{%8}"
#define OFFSETS_4 "{%8, %9}"
#define OFFSETS_5 "{%8, %9, %10}"
#define OPERANDS(c) "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]), "r"(c.at[4])

/// The box as it lies in shared memory goes to y.
#define LOAD(name, rank, mode, taps)                                                                                \
  extern "C" __global__ void name##rank(const __grid_constant__ Map map, const __grid_constant__ Corner corner,     \
                                        uint4* y, int bytes) {                                                      \
    extern __shared__ __align__(1024) uint4 box[];                                                                  \
    __shared__ unsigned long long barrier;                                                                          \
    if (threadIdx.x == 0) {                                                                                         \
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&barrier)) : "memory");                \
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");                                            \
      asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");                                              \
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(&barrier)), "r"(bytes) \
                   : "memory");                                                                                     \
      asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global." mode                                   \
                   "mbarrier::complete_tx::bytes [%0], [%1, " COORDINATES_##rank "], [%7]" taps                     \
                                                                                 ";" ::"r"(address_of(box)),        \
                   "l"(&map), OPERANDS(corner), "r"(address_of(&barrier)), "h"((short)corner.offsets[0]),           \
                   "h"((short)corner.offsets[1]), "h"((short)corner.offsets[2])                                     \
                   : "memory");                                                                                     \
    }                                                                                                               \
    __syncthreads();                                                                                                \
    asm volatile(                                                                                                   \
        "{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"                    \
        "@!done bra AGAIN;\n}" ::"r"(address_of(&barrier))                                                          \
        : "memory");                                                                                                \
    for (int i = threadIdx.x; i < bytes / 16; i += blockDim.x) y[i] = box[i];                                       \
  }

/// The box comes from x as it shall lie in shared memory.
#define STORE(name, rank, instruction)                                                                          \
  extern "C" __global__ void name##rank(const __grid_constant__ Map map, const __grid_constant__ Corner corner, \
                                        const uint4* x, int bytes) {                                            \
    extern __shared__ __align__(1024) uint4 box[];                                                              \
    for (int i = threadIdx.x; i < bytes / 16; i += blockDim.x) box[i] = x[i];                                   \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                                                \
    __syncthreads();                                                                                            \
    if (threadIdx.x != 0) return;                                                                               \
    asm volatile(instruction " [%1, " COORDINATES_##rank "], [%0];" ::"r"(address_of(box)), "l"(&map),          \
                 OPERANDS(corner)                                                                               \
                 : "memory");                                                                                   \
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");                                                   \
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");                                                   \
  }

LOAD(load, 1, "", "")
LOAD(load, 2, "", "")
LOAD(load, 3, "", "")
LOAD(load, 4, "", "")
LOAD(load, 5, "", "")
LOAD(pixels, 3, "im2col.", ", " OFFSETS_3)
LOAD(pixels, 4, "im2col.", ", " OFFSETS_4)
LOAD(pixels, 5, "im2col.", ", " OFFSETS_5)
STORE(store, 1, "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group")
STORE(store, 2, "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group")
STORE(store, 3, "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group")
STORE(store, 4, "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group")
STORE(store, 5, "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group")
STORE(store_pixels, 3, "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group")
STORE(store_pixels, 4, "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group")
STORE(add, 2, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group")
STORE(max, 2, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group")

/// Without a tensor map: y[i] += x[i] of a block's 256 floats, through shared memory.
extern "C" __global__ void add_bulk(const float* x, float* y) {
  __shared__ __align__(128) float part[256];
  part[threadIdx.x] = x[threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(y),
               "r"(address_of(part)), "r"(1024)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// A cluster of two: the first block copies one box to both.
extern "C" __global__ void __cluster_dims__(2)
    multicast2(const __grid_constant__ Map map, const __grid_constant__ Corner corner, uint4* y, int bytes) {
  extern __shared__ __align__(1024) uint4 box[];
  __shared__ unsigned long long barrier;
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(&barrier)), "r"(bytes)
                 : "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (rank == 0 && threadIdx.x == 0)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
        "{%2, "
        "%3}], [%4], %5;" ::"r"(address_of(box)),
        "l"(&map), "r"(corner.at[0]), "r"(corner.at[1]), "r"(address_of(&barrier)), "h"((unsigned short)3)
        : "memory");
  asm volatile(
      "{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n@!done bra AGAIN;\n}" ::
          "r"(address_of(&barrier))
      : "memory");
  for (int i = threadIdx.x; i < bytes / 16; i += blockDim.x) y[rank * (bytes / 16) + i] = box[i];
}
