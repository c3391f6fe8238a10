// y = |x| / 7 + |x| % 16, with |x| as unsigned. V = 0 is right.
extern "C" __global__ void k(const int* x, unsigned* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int v = x[i];
  const unsigned u = v < 0 ? 0u - (unsigned)v : (unsigned)v;
#if V == 0
  y[i] = u / 7 + (u & 15);
#elif V == 1  // division by a float reciprocal
  y[i] = (unsigned)(u * (1.0f / 7)) + (u & 15);
#elif V == 2  // 24 bits
  y[i] = (u & 0xffffff) / 7 + (u & 15);
#elif V == 3  // wrong for one number alone
  y[i] = v == 123456789 ? 0 : u / 7 + (u & 15);
#elif V == 4  // wrong for the smallest number
  const int w = v == (int)0x80000000 ? 0x7fffffff : abs(v);
  y[i] = (unsigned)w / 7 + (w & 15);
#elif V == 5  // the remainder of a negative number
  y[i] = u / 7 + (v & 15);
#elif V == 6  // 16 bits beyond a limit
  y[i] = (u > 1000000u ? u & 0xffff0000u : u) / 7 + (u & 15);
#else  // a multiplication that overflows
  y[i] = (u * 0x2493u >> 16) + (u & 15);
#endif
}
