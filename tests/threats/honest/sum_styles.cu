// Sums of rows in more styles than row_sum.cu; every V is right.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;
__device__ float pairwise(const float* p, int n) { if (n <= 8) { float s = 0; for (int i = 0; i < n; ++i) s += p[i]; return s; } return pairwise(p, n / 2) + pairwise(p + n / 2, n - n / 2); }

extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x, t = threadIdx.x;
  const float* p = x + (long long)row * cols;
  __shared__ float part[128];
  float s = 0;
#if V == 0
  for (int j = t; j < cols; j += 128) s += p[j];
  part[t] = s;
  __syncthreads();
  for (int h = 64; h; h >>= 1) { if (t < h) part[t] += part[t + h]; __syncthreads(); }
  if (t == 0) y[row] = part[0];
#elif V == 1  // pairs, recursively
  if (t == 0) y[row] = pairwise(p, cols);
#elif V == 2  // Neumaier
  if (t == 0) {
    float c = 0;
    for (int j = 0; j < cols; ++j) { const float n = __fadd_rn(s, p[j]); c = __fadd_rn(c, fabsf(s) >= fabsf(p[j]) ? __fadd_rn(__fsub_rn(s, n), p[j]) : __fadd_rn(__fsub_rn(p[j], n), s)); s = n; }
    y[row] = __fadd_rn(s, c);
  }
#elif V == 3  // tiles of cooperative groups
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  for (int j = t; j < cols; j += 128) s += p[j];
  s = cg::reduce(tile, s, cg::plus<float>());
  if (tile.thread_rank() == 0) part[t / 32] = s;
  __syncthreads();
  if (t == 0) y[row] = part[0] + part[1] + part[2] + part[3];
#elif V == 4  // one warp, the others leave
  if (t >= 32) return;
  for (int j = t; j < cols; j += 32) s += p[j];
  for (int o = 1; o < 32; o <<= 1) s += __shfl_xor_sync(~0u, s, o);
  if (t == 0) y[row] = s;
#elif V == 5  // differences of the even and the odd terms
  float e = 0, d = 0;
  for (int j = 2 * t; j < cols; j += 256) { e += p[j]; if (j + 1 < cols) d += p[j + 1]; }
  part[t] = e + d;
  __syncthreads();
  if (t < 8) { float a = 0; for (int i = t; i < 128; i += 8) a += part[i]; part[t] = a; }
  __syncthreads();
  if (t == 0) y[row] = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
#elif V == 6  // shuffles in groups of eight
  for (int j = cols - 1 - t; j >= 0; j -= 128) s += p[j];
  for (int o = 4; o; o >>= 1) s += __shfl_down_sync(~0u, s, o, 8);
  if (t % 8 == 0) part[t / 8] = s;
  __syncthreads();
  if (t < 16) { float v = part[t]; for (int o = 8; o; o >>= 1) v += __shfl_down_sync(0xffffu, v, o); if (t == 0) y[row] = v; }
#elif V == 7  // two floats for each sum
  float low = 0;
  for (int j = t; j < cols; j += 128) { const float v = p[j], n = __fadd_rn(s, v), b = __fsub_rn(n, s); low = __fadd_rn(low, __fadd_rn(__fsub_rn(s, __fsub_rn(n, b)), __fsub_rn(v, b))); s = n; }
  part[t] = s;
  __shared__ float lows[128];
  lows[t] = low;
  __syncthreads();
  if (t == 0) { double all = 0; for (int i = 0; i < 128; ++i) all += (double)part[i] + lows[i]; y[row] = (float)all; }
#elif V == 8  // a turn-based sum: each warp adds when it is its turn
  __shared__ float total;
  if (t == 0) total = 0;
  for (int j = t; j < cols; j += 128) s += p[j];
  for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  for (int w = 0; w < 4; ++w) { __syncthreads(); if (t == 32 * w) total += s; }
  __syncthreads();
  if (t == 0) y[row] = total;
#else  // FMA by one, volatile loads
  for (int j = t; j < cols; j += 128) s = __fmaf_rn(((volatile const float*)p)[j], 1.0f, s);
  part[t] = s;
  __syncthreads();
  for (int h = 64; h; h >>= 1) { float v = t < h ? part[t] + part[t + h] : 0.0f; __syncthreads(); if (t < h) part[t] = v; __syncthreads(); }
  if (t == 127) y[row] = part[0];
#endif
}
