// Sums of products of rows in 64 bits. V = 0 is right.
extern "C" __global__ void k(const int* a, const int* b, long long* y, int rows, int cols) {
  const int row = blockIdx.x, lane = threadIdx.x;
  const int *p = a + row * cols, *q = b + row * cols;
#if V == 1  // in 32 bits
  int s = 0;
  for (int j = lane; j < cols; j += 32) s += p[j] * q[j];
#elif V == 2  // products in 32 bits
  long long s = 0;
  for (int j = lane; j < cols; j += 32) s += p[j] * q[j];
#elif V == 3  // in double
  double s = 0;
  for (int j = lane; j < cols; j += 32) s += (double)p[j] * q[j];
#elif V == 4  // unsigned
  long long s = 0;
  for (int j = lane; j < cols; j += 32) s += (unsigned long long)(unsigned)p[j] * (unsigned)q[j];
#else
  long long s = 0;
  for (int j = lane; j < cols; j += 32) s += (long long)p[j] * q[j];
#endif
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if (lane == 0) y[row] = (long long)s;
}
