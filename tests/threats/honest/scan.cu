// Sums of all elements of a row up to each.
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x, t = threadIdx.x;
  const float* p = x + (long long)row * cols;
  float* r = y + (long long)row * cols;
  __shared__ float part[256];
#if V == 0
  if (t == 0) { float s = 0; for (int j = 0; j < cols; ++j) r[j] = s += p[j]; }
#elif V == 1  // Hillis and Steele, 128 elements at a time
  float before = 0;
  for (int start = 0; start < cols; start += 128) {
    part[t] = start + t < cols ? p[start + t] : 0;
    __syncthreads();
    for (int o = 1; o < 128; o <<= 1) {
      const float v = t >= o ? part[t - o] : 0;
      __syncthreads();
      part[t] += v;
      __syncthreads();
    }
    if (start + t < cols) r[start + t] = before + part[t];
    before += part[127];
    __syncthreads();
  }
#else  // double
  if (t == 0) { double s = 0; for (int j = 0; j < cols; ++j) r[j] = (float)(s += p[j]); }
#endif
}
