// Index of the first largest element of each row.
extern "C" __global__ void k(const float* x, int* y, int rows, int cols) {
  const int row = blockIdx.x, t = threadIdx.x;
  const float* p = x + (long long)row * cols;
#if V == 0
  if (t == 0) {
    int best = 0;
    for (int j = 1; j < cols; ++j) if (p[j] > p[best]) best = j;
    y[row] = best;
  }
#elif V == 1  // from the end
  if (t == 0) {
    int best = cols - 1;
    for (int j = cols - 1; j-- > 0;) if (p[j] >= p[best]) best = j;
    y[row] = best;
  }
#else  // whole block, ties to the smaller index
  __shared__ float value[128];
  __shared__ int index[128];
  int best = t;
  for (int j = t + 128; j < cols; j += 128) if (p[j] > p[best]) best = j;
  value[t] = p[best];
  index[t] = best;
  __syncthreads();
  for (int h = 64; h; h >>= 1) {
    if (t < h) {
      const float a = value[t], b = value[t + h];
      if (b > a || (b == a && index[t + h] < index[t])) { value[t] = b; index[t] = index[t + h]; }
    }
    __syncthreads();
  }
  if (t == 0) y[row] = index[0];
#endif
}
