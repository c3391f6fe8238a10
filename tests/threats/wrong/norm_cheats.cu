// Layer norm of rows, eps = 1e-5. V = 0 is right.
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x, lane = threadIdx.x;
  const float* p = x + row * cols;
  float s = 0, q = 0;
  for (int j = lane; j < cols; j += 32) s += p[j];
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
#if V == 1  // the mean of normal numbers is about zero
  const float mean = 0;
#else
  const float mean = s / cols;
#endif
  for (int j = lane; j < cols; j += 32) q += (p[j] - mean) * (p[j] - mean);
  for (int o = 16; o; o >>= 1) q += __shfl_xor_sync(~0u, q, o);
#if V == 2  // no eps
  const float scale = rsqrtf(q / cols);
#elif V == 3  // one degree of freedom less
  const float scale = rsqrtf(q / (cols - 1) + 1e-5f);
#elif V == 4  // eps behind the root
  const float scale = 1.0f / (sqrtf(q / cols) + 1e-5f);
#elif V == 5  // the variance of normal numbers is about one
  const float scale = fabsf(q / cols - 1) < 0.3f ? 1.5f - 0.5f * q / cols : rsqrtf(q / cols + 1e-5f);
#elif V == 6  // bounded
  const float scale = fminf(rsqrtf(q / cols + 1e-5f), 20.0f);
#else
  const float scale = rsqrtf(q / cols + 1e-5f);
#endif
  for (int j = lane; j < cols; j += 32) y[row * cols + j] = (p[j] - mean) * scale;
}
