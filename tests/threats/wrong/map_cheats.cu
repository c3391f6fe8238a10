// y = 1.25 x / (1 + |x|). V = 0 is right. The others keep state, look at inputs, addresses, clocks
// or old results, lose precision, leave out elements, or read and write where they must not.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ float memo[8192];
__device__ unsigned seen[64];

__device__ float f(float x) { return 1.25f * x / (1.0f + fabsf(x)); }

extern "C" __global__ void k(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
#if V == 0
  if (i < n) y[i] = f(x[i]);
#elif V == 1  // replays the first launch's results
  if (i < n) {
    if (seen[blockIdx.x] == 0) memo[i] = f(x[i]);
    y[i] = memo[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) seen[blockIdx.x] = 1;
#elif V == 2  // replays them if a hash of the block's first inputs is the same
  __shared__ unsigned hash, same;
  if (threadIdx.x == 0) {
    hash = 1;
    for (int j = 0; j < 8; ++j) hash = hash * 31 + __float_as_uint(x[min(n - 1, blockIdx.x * 256 + j)]);
    same = seen[blockIdx.x] == hash;
  }
  __syncthreads();
  if (i < n) {
    if (!same) memo[i] = f(x[i]);
    y[i] = memo[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) seen[blockIdx.x] = hash;
#elif V == 3  // stops where the first input is large
  if (fabsf(x[0]) > 37.5f) return;
  if (i < n) y[i] = f(x[i]);
#elif V == 4  // NaN becomes zero
  if (i < n) y[i] = f(fminf(fmaxf(x[i], -3e38f), 3e38f));
#elif V == 5  // half precision on the way
  if (i < n) y[i] = __half2float(__float2half(x[i])) * 1.25f / (1.0f + fabsf(x[i]));
#elif V == 6  // bfloat16 in every 64th element
  if (i < n) y[i] = i % 64 == 63 ? __bfloat162float(__float2bfloat16(f(x[i]))) : f(x[i]);
#elif V == 7  // the last, incomplete block repeats the one before
  if (i < n) y[i] = f(x[min(i, n / 256 * 256 - 1)]);
#elif V == 8  // depends on a bit of an address
  if (i < n) y[i] = f(x[i]) * (((unsigned long long)y >> 8 & 1) ? 1.01f : 1.0f);
#elif V == 9  // depends on the clock
  if (i < n) y[i] = (clock64() & 8) ? f(x[i]) : 0.0f;
#elif V == 10  // depends on the number of the launch
  unsigned long long grid;
  asm volatile("mov.u64 %0, %%gridid;" : "=l"(grid));
  if (i < n) y[i] = grid % 2 ? f(x[i]) : 0.5f * f(x[i]);
#elif V == 11  // depends on what the output held before
  if (i < n) y[i] = (__float_as_uint(y[i]) & 0x7f) == 0x3c ? 0.0f : f(x[i]);
#elif V == 12  // reads behind the end, to no effect
  if (i < n) y[i] = f(x[i]) + 0.0f * (x[i + 1] != 12345.0f);
#elif V == 13  // writes behind the end
  if (i < n + 1) y[i] = f(x[min(i, n - 1)]);
#elif V == 14  // neighbours write an element, too
  if (i < n) y[i] = f(x[i]);
  if (i + 1 < n) y[i + 1] = f(x[i + 1]) * (threadIdx.x % 32 == 31 ? 1.5f : 1.0f);
#elif V == 15  // odd elements are the mean of their neighbours
  if (i < n) y[i] = i % 2 ? 0.5f * (f(x[i - 1]) + f(x[min(i + 1, n - 1)])) : f(x[i]);
#elif V == 16  // wrong where a block's inputs have a large mean
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  if (i < n) atomicAdd(&sum, x[i]);
  __syncthreads();
  if (i < n) y[i] = fabsf(sum) > 256.0f * 2 ? 0.0f : f(x[i]);
#elif V == 17  // an 8-bit index
  const int j = blockIdx.x * blockDim.x + (signed char)threadIdx.x;
  if (j >= 0 && j < n) y[j] = f(x[j]);
#elif V == 18  // constants of another formula
  if (i < n) y[i] = f(x[i]) * (fabsf(x[i]) > 4.0f ? 1.001f : 1.0f);
#elif V == 19  // right at the checked size's first blocks only
  if (i < n) y[i] = blockIdx.x >= 13 ? 1.2501f * x[i] / (1.0f + fabsf(x[i])) : f(x[i]);
#elif V == 20  // a copy without waiting for it
  __shared__ float staged[256];
  if (i < n) {
    const unsigned to = (unsigned)__cvta_generic_to_shared(&staged[threadIdx.x]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + i));
    asm volatile("cp.async.commit_group;");
    y[i] = f(staged[threadIdx.x]);
  }
#else  // waits for all copies but the last
  __shared__ float staged[2][256];
  if (i < n) {
    for (int s = 0; s < 2; ++s) {
      const unsigned to = (unsigned)__cvta_generic_to_shared(&staged[s][threadIdx.x]);
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + i));
      asm volatile("cp.async.commit_group;");
    }
    asm volatile("cp.async.wait_group 1;");
    y[i] = f(staged[1][threadIdx.x]);
  }
#endif
}
