// Softmax of rows.
__device__ float all_max(float v, float* part) {
  for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  return fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
}
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
#if V == 0  // one thread computes the sum
  __shared__ float m, s;
  if (t == 0) {
    float a = p[0], b = 0;
    for (int j = 1; j < cols; ++j) a = fmaxf(a, p[j]);
    for (int j = 0; j < cols; ++j) b += expf(p[j] - a);
    m = a;
    s = b;
  }
  __syncthreads();
  for (int j = t; j < cols; j += 128) r[j] = expf(p[j] - m) / s;
#elif V == 1  // whole block
  float m = p[0], s = 0;
  for (int j = t; j < cols; j += 128) m = fmaxf(m, p[j]);
  m = all_max(m, part);
  for (int j = t; j < cols; j += 128) s += expf(p[j] - m);
  s = all_sum(s, part);
  for (int j = t; j < cols; j += 128) r[j] = expf(p[j] - m) / s;
#elif V == 2  // powers of two
  float m = p[0], s = 0;
  for (int j = t; j < cols; j += 128) m = fmaxf(m, p[j]);
  m = all_max(m, part);
  for (int j = t; j < cols; j += 128) s += exp2f((p[j] - m) * 1.4426950408889634f);
  const float f = 1 / all_sum(s, part);
  for (int j = t; j < cols; j += 128) r[j] = exp2f((p[j] - m) * 1.4426950408889634f) * f;
#elif V == 3  // online: maximum and sum in one pass
  float m = -__int_as_float(0x7f800000), s = 0;
  for (int j = t; j < cols; j += 128) {
    const float n = fmaxf(m, p[j]);
    const float none = -__int_as_float(0x7f800000);
    s = (s == 0 ? 0 : s * expf(m - n)) + (p[j] == none ? 0 : expf(p[j] - n));
    m = n;
  }
  const float n = all_max(m, part);
  s = all_sum(s == 0 ? 0.0f : s * expf(m - n), part);
  for (int j = t; j < cols; j += 128) r[j] = expf(p[j] - n) / s;
#else  // sum in double
  float m = p[0];
  for (int j = t; j < cols; j += 128) m = fmaxf(m, p[j]);
  m = all_max(m, part);
  double s = 0;
  for (int j = 0; j < cols; ++j) s += (double)expf(p[j] - m);
  for (int j = t; j < cols; j += 128) r[j] = (float)(expf(p[j] - m) / s);
#endif
}
