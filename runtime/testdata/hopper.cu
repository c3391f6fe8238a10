// Device code of the runtime's tests for Hopper; hopper.ptx is `nvcc -ptx -arch=compute_90 hopper.cu`.
struct alignas(64) Map {
  unsigned char bytes[128];
};

__device__ unsigned address_of(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

// y = x, in boxes of 64 elements that a tensor map describes; what lies beyond the end comes as zeros. Blocks then wait for
// each other: the last element of y is the number of blocks, and only right if all are there at once.
extern "C" __global__ void boxes(const __grid_constant__ Map map, unsigned* arrived, float* y, int n) {
  __shared__ __align__(128) float box[64];
  __shared__ unsigned long long barrier;
  const int first = blockIdx.x * 64;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(address_of(&barrier)) : "memory");
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(
                     address_of(box)),
                 "l"(&map), "r"(first), "r"(address_of(&barrier))
                 : "memory");
  }
  __syncthreads();
  asm volatile("{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n@!done bra AGAIN;\n}" ::"r"(
                   address_of(&barrier))
               : "memory");
  const int i = first + threadIdx.x;
  if (i < n - 1) y[i] = box[threadIdx.x];
  if (threadIdx.x != 0) return;
  __threadfence();
  atomicAdd(arrived, 1);
  unsigned now = 0;
  while (now < gridDim.x) asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
  if (i + 64 >= n) y[n - 1] = (float)now;
}

// The counter starts at zero.
extern "C" __global__ void begin(unsigned* arrived) { *arrived = 0; }
