// x divided by the length of its row.
__device__ float all_sum(float v, float* part) {
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  return part[0] + part[1] + part[2] + part[3];
}
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x, t = threadIdx.x;
  const float* p = x + (long long)row * cols;
  float* r = y + (long long)row * cols;
  __shared__ float part[4];
#if V == 0
  float s = 0;
  for (int j = 0; j < cols; ++j) s += p[j] * p[j];
  for (int j = t; j < cols; j += 128) r[j] = p[j] / sqrtf(s + 1e-6f);
#else
  float s = 0;
  for (int j = t; j < cols; j += 128) s += p[j] * p[j];
  s = all_sum(s, part) + 1e-6f;
#if V == 1
  for (int j = t; j < cols; j += 128) r[j] = p[j] * rsqrtf(s);
#elif V == 2
  for (int j = t; j < cols; j += 128) r[j] = p[j] * (1 / sqrtf(s));
#else
  for (int j = t; j < cols; j += 128) r[j] = __fdividef(p[j], __fsqrt_rn(s));
#endif
#endif
}
