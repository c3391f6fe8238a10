// 1 / (1 + exp(-x)).
extern "C" __global__ void k(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
#if V == 0
  y[i] = 1 / (1 + expf(-v));
#elif V == 1
  y[i] = __frcp_rn(1 + expf(-v));
#elif V == 2
  y[i] = 1 / (1 + exp2f(-v * 1.4426950408889634f));
#elif V == 3
  y[i] = (float)(1 / (1 + exp(-(double)v)));
#else
  y[i] = v >= 0 ? 1 / (1 + expf(-v)) : expf(v) / (1 + expf(v));
#endif
}
