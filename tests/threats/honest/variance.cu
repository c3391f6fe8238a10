// Variances of rows.
__device__ float total(float s, float* part) {
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  return part[0] + part[1] + part[2] + part[3];
}
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x, t = threadIdx.x;
  const float* p = x + (long long)row * cols;
  __shared__ float part[4];
#if V == 0  // two passes, one thread
  if (t == 0) {
    float m = 0, q = 0;
    for (int j = 0; j < cols; ++j) m += p[j];
    m /= cols;
    for (int j = 0; j < cols; ++j) q += (p[j] - m) * (p[j] - m);
    y[row] = q / cols;
  }
#elif V == 1  // two passes, whole block
  float s = 0, q = 0;
  for (int j = t; j < cols; j += 128) s += p[j];
  const float m = total(s, part) / cols;
  for (int j = t; j < cols; j += 128) q += (p[j] - m) * (p[j] - m);
  q = total(q, part);
  if (t == 0) y[row] = q / cols;
#elif V == 2  // Welford
  if (t == 0) {
    float m = 0, q = 0;
    for (int j = 0; j < cols; ++j) {
      const float d = p[j] - m;
      m += d / (j + 1);
      q += d * (p[j] - m);
    }
    y[row] = q / cols;
  }
#elif V == 3  // one pass in double
  if (t == 0) {
    double s = 0, q = 0;
    for (int j = 0; j < cols; ++j) { s += p[j]; q += (double)p[j] * p[j]; }
    s /= cols;
    const double v = q / cols - s * s;
    y[row] = v < 0 ? 0.0f : (float)v;
  }
#else  // the sum of deviations corrects the mean's rounding
  float s = 0, q = 0, e = 0;
  for (int j = t; j < cols; j += 128) s += p[j];
  const float m = total(s, part) / cols;
  for (int j = t; j < cols; j += 128) { const float d = p[j] - m; q += d * d; e += d; }
  q = total(q, part);
  e = total(e, part);
  if (t == 0) y[row] = (q - e * e / cols) / cols;
#endif
}
