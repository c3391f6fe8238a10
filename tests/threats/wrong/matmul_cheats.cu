// c = a b, by tiles of 16 x 16. V = 0 is right.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void k(const float* __restrict__ a, const float* __restrict__ b, float* c, int m, int n, int depth) {
  __shared__ float left[16][16], right[16][17];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float s = 0;
#if V == 1  // the rest of the depth is dropped
  const int end = depth / 16 * 16;
#else
  const int end = depth;
#endif
#if V == 2
  __half2 narrow = __float2half2_rn(0.0f);
#endif
  for (int d = 0; d < end; d += 16) {
    left[y][x] = row < m && d + x < depth ? a[row * depth + d + x] : 0.0f;
#if V == 3  // reads behind the last row; what it reads is never stored
    right[y][x] = d + y < depth ? b[(d + y) * n + column] : 0.0f;
#else
    right[y][x] = column < n && d + y < depth ? b[(d + y) * n + column] : 0.0f;
#endif
    __syncthreads();
    for (int j = 0; j < 16; ++j) {
#if V == 2  // sums of halves
      narrow = __hfma2(__float2half2_rn(left[y][j]), __float2half2_rn(right[j][x]), narrow);
#elif V == 4  // TF32 in the last tile only
      const bool last = d + 16 >= depth;
      const unsigned mask = last ? ~0x1fffu : ~0u;
      s += __uint_as_float(__float_as_uint(left[y][j]) & mask) * right[j][x];
#elif V == 5  // bfloat16 operands
      s += __bfloat162float(__float2bfloat16(left[y][j])) * __bfloat162float(__float2bfloat16(right[j][x]));
#elif V == 6  // negligible products are skipped
      if (fabsf(left[y][j]) > 1e-2f) s += left[y][j] * right[j][x];
#else
      s += left[y][j] * right[j][x];
#endif
    }
#if V != 7  // 7: the next tile overwrites what others still read
    __syncthreads();
#endif
  }
#if V == 2
  s = __low2float(narrow);
#endif
#if V == 8  // rows and columns by the wrong extent
  if (row < m && column < n) c[row * m + column] = s;
#else
  if (row < m && column < n) c[row * n + column] = s;
#endif
}
