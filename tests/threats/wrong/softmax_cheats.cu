// Softmax of rows. V = 0 is right.
#include <cuda_fp16.h>

extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* p = x + row * cols;
  float m = -INFINITY, s = 0;
#if V == 1  // no maximum is subtracted
  m = 0;
#elif V == 2  // the maximum of the first 32
  m = p[lane];
#else
  for (int j = lane; j < cols; j += 32) m = fmaxf(m, p[j]);
#endif
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  for (int j = lane; j < cols; j += 32) {
#if V == 3  // small exponentials count as zero
    s += p[j] < m - 6 ? 0.0f : expf(p[j] - m);
#elif V == 4  // exponentials of half precision
    s += __half2float(hexp(__float2half(p[j] - m)));
#elif V == 5  // a sample of the sum
    s += j < cols / 2 ? 2 * expf(p[j] - m) : 0.0f;
#else
    s += expf(p[j] - m);
#endif
  }
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
#if V == 6  // the sum of the first row of four
  __shared__ float sums;
  if (threadIdx.x == 0) sums = s;
  __syncthreads();
  s = sums;
#elif V == 7  // a quotient of eleven bits
  s = 1.0f / __half2float(__float2half(1.0f / s));
#endif
  for (int j = lane; j < cols; j += 32) y[row * cols + j] = expf(p[j] - m) / s;
}
