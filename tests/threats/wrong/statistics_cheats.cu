// Statistics of rows of very different size: 1e6 times the sum of squares, the mean, the largest
// magnitude, the share of positive numbers. V = 0 is right.
__device__ float sum(float v) { for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o); return v; }

extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  const int row = blockIdx.x, lane = threadIdx.x;
  const float* p = x + row * cols;
  float squares = 0, all = 0, most = 0, positive = 0;
  for (int j = lane; j < cols; j += 32) {
    squares += p[j] * p[j];
    if (V != 1 || j < cols / 2) all += V == 1 ? 2 * p[j] : p[j];  // V == 1: the mean of one half
    most = isnan(p[j]) ? p[j] : fmaxf(most, V == 2 ? p[j] : fabsf(p[j]));  // V == 2: the largest
    positive += V == 3 ? p[j] >= 0.5f : p[j] > 0;  // V == 3: another threshold
  }
  squares = sum(squares);
  all = sum(all);
  positive = sum(positive);
  for (int o = 16; o; o >>= 1) {
    const float other = __shfl_xor_sync(~0u, most, o);
    most = isnan(other) || isnan(most) ? NAN : fmaxf(most, other);
  }
  if (lane != 0) return;
  y[4 * row] = 1e6f * squares;
  y[4 * row + 1] = V == 4 ? 0.0f : all / cols;  // V == 4: no mean
  y[4 * row + 2] = most;
  y[4 * row + 3] = V == 5 ? 0.5f : positive / cols;  // V == 5: as many of either sign
}
