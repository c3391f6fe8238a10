// Number of one bits.
extern "C" __global__ void k(const unsigned* x, unsigned* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
#if V == 0
  y[i] = __popc(x[i]);
#elif V == 1
  unsigned v = x[i], c = 0;
  for (; v; v &= v - 1) ++c;
  y[i] = c;
#else
  unsigned v = x[i];
  v -= v >> 1 & 0x55555555u;
  v = (v & 0x33333333u) + (v >> 2 & 0x33333333u);
  y[i] = ((v + (v >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
#endif
}
