// Two smoothing steps of three points. V = 0 is right.
extern "C" __global__ void k(const float* x, float* w, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const auto at = [&](int j) { return x[min(max(j, 0), n - 1)]; };
  const auto smooth = [&](int j) { j = min(max(j, 0), n - 1); return 0.25f * at(j - 1) + 0.5f * at(j) + 0.25f * at(j + 1); };
#if V == 0
  if (i < n) y[i] = 0.25f * smooth(i - 1) + 0.5f * smooth(i) + 0.25f * smooth(i + 1);
#elif V == 1  // the neighbours' first step through memory, without waiting for other blocks
  if (i < n) w[i] = smooth(i);
  __syncthreads();
  if (i < n) y[i] = 0.25f * w[max(i - 1, 0)] + 0.5f * w[i] + 0.25f * w[min(i + 1, n - 1)];
#elif V == 2  // a fence in place of waiting
  if (i < n) w[i] = smooth(i);
  __threadfence();
  __syncthreads();
  if (i < n) y[i] = 0.25f * ((volatile float*)w)[max(i - 1, 0)] + 0.5f * w[i] + 0.25f * ((volatile float*)w)[min(i + 1, n - 1)];
#elif V == 3  // no halo at the edges of blocks
  __shared__ float own[256];
  own[threadIdx.x] = i < n ? smooth(i) : 0.0f;
  __syncthreads();
  const int t = threadIdx.x, last = min(255, n - 1 - (int)blockIdx.x * 256);
  if (i < n) y[i] = 0.25f * own[max(t - 1, 0)] + 0.5f * own[t] + 0.25f * own[min(t + 1, last)];
#elif V == 4  // one step
  if (i < n) y[i] = smooth(i);
#elif V == 5  // wraps around at the ends
  const auto turn = [&](int j) { return smooth((j + n) % n); };
  if (i < n) y[i] = 0.25f * turn(i - 1) + 0.5f * turn(i) + 0.25f * turn(i + 1);
#else  // the output as memory of the first step
  if (i < n) y[i] = smooth(i);
  __syncthreads();
  const float left = i < n ? y[max(i - 1, 0)] : 0, right = i < n ? y[min(i + 1, n - 1)] : 0;
  __syncthreads();
  if (i < n) y[i] = 0.25f * left + 0.5f * y[i] + 0.25f * right;
#endif
}
