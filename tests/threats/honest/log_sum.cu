// log(1 + |x|) by formulas of the same precision.
extern "C" __global__ void k(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const float v = fabsf(x[i]);
#if V == 0
  y[i] = log1pf(v);
#elif V == 1
  y[i] = (float)log1p((double)v);
#else
  y[i] = v < 0.5f ? 2 * atanhf(v / (2 + v)) : logf(1 + v);
#endif
}
