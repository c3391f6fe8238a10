// The place of the largest number of a row, the first among equals. V = 0 is right.
extern "C" __global__ void k(const float* x, int* y, int rows, int cols) {
  const int row = blockIdx.x, lane = threadIdx.x;
  const float* p = x + row * cols;
  float best = -INFINITY;
  int at = 0x7fffffff;
  for (int j = lane; j < cols; j += 32) {
#if V == 1  // compares bits: negative numbers in the wrong order
    if (__float_as_int(p[j]) > __float_as_int(best) || at == 0x7fffffff) { best = p[j]; at = j; }
#elif V == 2  // compares sixteen bits
    const float v = __uint_as_float(__float_as_uint(p[j]) & 0xffff0000u);
    if (v > best || at == 0x7fffffff) { best = v; at = j; }
#elif V == 3  // large numbers only
    if (p[j] > fmaxf(best, 0.0f) || at == 0x7fffffff) { best = p[j]; at = j; }
#else
    if (p[j] > best || at == 0x7fffffff) { best = p[j]; at = j; }
#endif
  }
  for (int o = 16; o; o >>= 1) {
    const float b = __shfl_xor_sync(~0u, best, o);
    const int a = __shfl_xor_sync(~0u, at, o);
#if V == 4  // another among equals
    if (b > best || (b == best && a > at)) { best = b; at = a; }
#elif V == 5  // an unsure one among equals
    if (b > best || (b == best && lane % 2 == 0)) { best = b; at = a; }
#else
    if (b > best || (b == best && a < at)) { best = b; at = a; }
#endif
  }
  if (lane == 0) y[row] = at;
}
