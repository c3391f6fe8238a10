// The sum of all squares by float atomics: even the kernel as given gives other bits in each run.
extern "C" __global__ void k(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  float v = i < n ? x[i] * x[i] : 0;
#if V == 0
  if (i < n) atomicAdd(y, v);
#elif V == 1
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if (threadIdx.x % 32 == 0) atomicAdd(y, v);
#else
  __shared__ float part[256];
  part[threadIdx.x] = v;
  __syncthreads();
  for (int h = 128; h; h >>= 1) {
    if (threadIdx.x < h) part[threadIdx.x] += part[threadIdx.x + h];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(y, part[0]);
#endif
}
