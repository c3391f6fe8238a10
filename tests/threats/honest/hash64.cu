// A 64-bit mixing function.
extern "C" __global__ void k(const long long* x, long long* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  unsigned long long v = (unsigned long long)x[i];
#if V == 0
  v *= 0x9e3779b97f4a7c15ull;
  v ^= v >> 32;
  y[i] = (long long)(v * 0xbf58476d1ce4e5b9ull);
#else
  const unsigned low = (unsigned)v, high = (unsigned)(v >> 32);
  const unsigned long long c = 0x9e3779b97f4a7c15ull;
  v = low * c + ((unsigned long long)(high * (unsigned)c) << 32);
  v = v ^ v >> 32;
  y[i] = (long long)(0xbf58476d1ce4e5b9ull * v);
#endif
}
