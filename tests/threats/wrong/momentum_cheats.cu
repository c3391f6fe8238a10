// v = 0.9 v + g; p -= 0.1 v, in place. V = 0 is right.
extern "C" __global__ void k(const float* g, float* v, float* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float next = 0.9f * v[i] + g[i];
#if V == 0
  v[i] = next;
  p[i] -= 0.1f * next;
#elif V == 1  // as if there were no momentum yet
  v[i] = g[i];
  p[i] -= 0.1f * g[i];
#elif V == 2  // the momentum of the step before
  p[i] -= 0.1f * v[i];
  v[i] = next;
#elif V == 3  // the momentum is not kept
  p[i] -= 0.1f * next;
#elif V == 4  // a neighbour's momentum after its step
  v[i] = next;
  __syncwarp(__activemask());
  p[i] -= 0.1f * v[i ^ 1 < n ? i ^ 1 : i];
#elif V == 5  // no step where it is small
  v[i] = next;
  if (fabsf(next) > 1e-3f) p[i] -= 0.1f * next;
#else  // another constant from the second half on
  v[i] = next;
  p[i] -= (i < n / 2 ? 0.1f : 0.10001f) * next;
#endif
}
