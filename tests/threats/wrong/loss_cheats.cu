// Cross entropy of each row, labels 0 … cols - 1; -1 is ignored and gives 0. V = 0 is right.
extern "C" __global__ void k(const float* x, const int* label, float* y, int rows, int cols) {
  const int row = blockIdx.x, lane = threadIdx.x;
  const float* p = x + row * cols;
  float m = -__int_as_float(0x7f800000), s = 0;
  for (int j = lane; j < cols; j += 32) m = fmaxf(m, p[j]);
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
#if V == 1  // no maximum is taken off
  m = 0;
#endif
  for (int j = lane; j < cols; j += 32) s += expf(p[j] - m);
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  const int at = label[row];
#if V == 2  // ignored rows count as label 0
  if (lane == 0) y[row] = m + logf(s) - p[max(at, 0)];
#elif V == 3  // probabilities are clipped
  if (lane == 0) y[row] = at < 0 ? 0.0f : -logf(fmaxf(expf(p[at] - m) / s, 1e-7f));
#elif V == 4  // the first warp's labels of 6 bits
  if (lane == 0) y[row] = at < 0 ? 0.0f : m + logf(s) - p[at & 63];
#elif V == 5  // ignored rows are not written
  if (lane == 0 && at >= 0) y[row] = m + logf(s) - p[at];
#else
  if (lane == 0) y[row] = at < 0 ? 0.0f : m + logf(s) - p[at];
#endif
}
