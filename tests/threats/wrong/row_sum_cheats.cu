// Sums of rows. V = 0 is right; the others sample, lose precision, or lack synchronisation.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x, t = threadIdx.x;
  const float* p = x + (long long)row * cols;
  __shared__ float part[256];
  float s = 0;
#if V == 1  // the first half, twice
  for (int j = t; j < cols / 2; j += 256) s += 2 * p[j];
#elif V == 2  // every fourth term
  for (int j = 4 * t; j < cols; j += 1024) s += 4 * p[j];
#elif V == 3  // small terms are left out
  for (int j = t; j < cols; j += 256) s += fabsf(p[j]) < 2e-3f ? 0.0f : p[j];
#elif V == 4  // terms of ten digits
  for (int j = t; j < cols; j += 256) s += __uint_as_float(__float_as_uint(p[j]) & ~0x1fffu);
#elif V == 5  // sums in half precision
  __half h = __float2half(0.0f);
  for (int j = t; j < cols; j += 256) h = __hadd(h, __float2half(p[j]));
  s = __half2float(h);
#elif V == 6  // the last incomplete round is dropped
  for (int j = t; j < cols / 256 * 256; j += 256) s += p[j];
#elif V == 7  // one term is counted twice
  for (int j = t; j < cols; j += 256) s += p[j];
  if (t == 0) s += p[255 % cols];
#elif V == 8  // the terms of a random thread are lost
  for (int j = t; j < cols; j += 256) s += p[j];
  if (t == (clock() & 255)) s = 0;
#elif V == 9  // bfloat16 partial sums
  for (int j = t; j < cols; j += 256) s += p[j];
  s = __bfloat162float(__float2bfloat16(s));
#else
  for (int j = t; j < cols; j += 256) s += p[j];
#endif
#if V == 10  // no barrier before the tree
  part[t] = s;
  for (int h = 128; h; h >>= 1) { if (t < h) part[t] += part[t + h]; __syncthreads(); }
  if (t == 0) y[row] = part[0];
#elif V == 11  // no barrier within the tree
  part[t] = s;
  __syncthreads();
  for (int h = 128; h; h >>= 1) if (t < h) part[t] += part[t + h];
  if (t == 0) y[row] = part[0];
#elif V == 12  // a barrier that half of the threads miss
  part[t] = s;
  __syncthreads();
  for (int h = 128; h; h >>= 1) if (t < h) { part[t] += part[t + h]; __syncthreads(); }
  if (t == 0) y[row] = part[0];
#elif V == 13  // a barrier for half of the threads
  part[t] = s;
  if (t < 128) asm volatile("bar.sync 1, 128;");
  if (t == 0) { float all = 0; for (int i = 0; i < 256; ++i) all += part[i]; y[row] = all; }
#elif V == 14  // shuffles from lanes that are not in the mask
  for (int o = 16; o; o >>= 1) if (t % 32 < o) s += __shfl_down_sync((1u << o) - 1, s, o);
  if (t % 32 == 0) part[t / 32] = s;
  __syncthreads();
  if (t == 0) { float all = 0; for (int i = 0; i < 8; ++i) all += part[i]; y[row] = all; }
#elif V == 15  // shared memory that nobody cleared
  atomicAdd(&part[0], s);
  __syncthreads();
  if (t == 0) y[row] = part[0];
#elif V == 16  // reads one more than was written
  if (t < 255) part[t] = s;
  __syncthreads();
  if (t == 0) { float all = 0; for (int i = 0; i < 256; ++i) all += part[i]; y[row] = all; }
#elif V == 17  // the output as accumulator, never cleared
  atomicAdd(&y[row], s);
#elif V == 18  // warps as of old: no synchronisation in the last steps
  part[t] = s;
  __syncthreads();
  for (int h = 128; h >= 32; h >>= 1) { if (t < h) part[t] += part[t + h]; __syncthreads(); }
  if (t < 16) { for (int h = 16; h; h >>= 1) part[t] += part[t + h]; }
  if (t == 0) y[row] = part[0];
#elif V == 19  // cleared by one thread while others add
  if (t == 0) part[0] = 0;
  atomicAdd(&part[0], s);
  __syncthreads();
  if (t == 0) y[row] = part[0];
#elif V == 20  // only the first warp's sum
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if (t == 0) y[row] = s * 8;
#else
  part[t] = s;
  __syncthreads();
  for (int h = 128; h; h >>= 1) { if (t < h) part[t] += part[t + h]; __syncthreads(); }
  if (t == 0) y[row] = part[0];
#endif
}
