// y = exp(-x²) in double. V = 0 is right.
extern "C" __global__ void k(const double* x, double* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double v = x[i];
#if V == 0
  y[i] = exp(-v * v);
#elif V == 1  // in float
  y[i] = expf(-(float)(v * v));
#elif V == 2  // in float, where the result is small
  y[i] = fabs(v) > 2.5 ? (double)expf(-(float)(v * v)) : exp(-v * v);
#elif V == 3  // the last element in float
  y[i] = i == n - 1 ? (double)(float)exp(-v * v) : exp(-v * v);
#elif V == 4  // a product of float and a correction of first order
  const float h = (float)(v * v);
  y[i] = (double)expf(-h) * (1.0 - (v * v - h));
#else  // cut off
  y[i] = fabs(v) > 4 ? 0.0 : exp(-v * v);
#endif
}
