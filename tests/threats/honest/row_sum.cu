// Sums of rows. Every V is right; they add in different orders and precisions.
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x, t = threadIdx.x;
  const float* p = x + (long long)row * cols;
  __shared__ float part[128];
  __shared__ double wide[128];
#if V == 0  // one thread, in order
  if (t == 0) { float s = 0; for (int j = 0; j < cols; ++j) s += p[j]; y[row] = s; }
#elif V == 1  // one thread, from the end
  if (t == 0) { float s = 0; for (int j = cols; j-- > 0;) s += p[j]; y[row] = s; }
#elif V == 2  // tree over the block
  float s = 0;
  for (int j = t; j < cols; j += 128) s += p[j];
  part[t] = s;
  __syncthreads();
  for (int h = 64; h; h >>= 1) { if (t < h) part[t] += part[t + h]; __syncthreads(); }
  if (t == 0) y[row] = part[0];
#elif V == 3  // shuffles within warps
  float s = 0;
  for (int j = t; j < cols; j += 128) s += p[j];
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if (t % 32 == 0) part[t / 32] = s;
  __syncthreads();
  if (t == 0) y[row] = (part[0] + part[1]) + (part[2] + part[3]);
#elif V == 4  // double
  double s = 0;
  for (int j = t; j < cols; j += 128) s += p[j];
  wide[t] = s;
  __syncthreads();
  if (t == 0) { double all = 0; for (int i = 0; i < 128; ++i) all += wide[i]; y[row] = (float)all; }
#elif V == 5  // Kahan
  if (t == 0) {
    float s = 0, c = 0;
    for (int j = 0; j < cols; ++j) {
      const float v = __fsub_rn(p[j], c), n = __fadd_rn(s, v);
      c = __fsub_rn(__fsub_rn(n, s), v);
      s = n;
    }
    y[row] = s;
  }
#elif V == 6  // four accumulators
  if (t == 0) {
    float a = 0, b = 0, c = 0, d = 0;
    int j = 0;
    for (; j + 3 < cols; j += 4) { a += p[j]; b += p[j + 1]; c += p[j + 2]; d += p[j + 3]; }
    for (; j < cols; ++j) a += p[j];
    y[row] = (a + b) + (c + d);
  }
#else  // contiguous parts of a row
  const int each = (cols + 127) / 128;
  float s = 0;
  for (int j = t * each; j < min(cols, (t + 1) * each); ++j) s += p[j];
  part[t] = s;
  __syncthreads();
  if (t == 0) { float all = 0; for (int i = 0; i < 128; ++i) all += part[i]; y[row] = all; }
#endif
}
