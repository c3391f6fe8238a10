#include <cuda_bf16.h>
// Sums of rows of bfloat16, with a bfloat16 result.
extern "C" __global__ void k(const __nv_bfloat16* x, __nv_bfloat16* y, int rows, int cols) {
  const int row = blockIdx.x, t = threadIdx.x;
  const __nv_bfloat16* p = x + (long long)row * cols;
  __shared__ float part[128];
#if V == 0
  if (t == 0) {
    float s = 0;
    for (int j = 0; j < cols; ++j) s += __bfloat162float(p[j]);
    y[row] = __float2bfloat16(s);
  }
#elif V == 1
  float s = 0;
  for (int j = t; j < cols; j += 128) s += __bfloat162float(p[j]);
  part[t] = s;
  __syncthreads();
  for (int h = 64; h; h >>= 1) { if (t < h) part[t] += part[t + h]; __syncthreads(); }
  if (t == 0) y[row] = __float2bfloat16(part[0]);
#else
  if (t == 0) {
    double s = 0;
    for (int j = 0; j < cols; ++j) s += __bfloat162float(p[j]);
    y[row] = __double2bfloat16(s);
  }
#endif
}
