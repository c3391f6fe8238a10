// Newton's square root of |x| until it stands still. V = 0 is right.
extern "C" __global__ void k(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = fabsf(x[i]);
  float r = fmaxf(v, 1.0f);
#if V == 1  // five steps
  const int most = 5;
#elif V == 2  // enough steps for numbers about one
  const int most = 8;
#else
  const int most = 200;
#endif
  for (int step = 0; step < most; ++step) {
    const float next = 0.5f * (r + v / r);
#if V == 3  // stands still early
    if (fabsf(next - r) < 1e-4f) break;
#elif V == 4  // all threads of a warp stop with the first
    if (__any_sync(__activemask(), next == r)) break;
#else
    if (next >= r && step > 0) break;
#endif
    r = next;
  }
  y[i] = r;
}
