// The largest, the least number and the logarithm of the sum of exponentials. V = 0 is right.
__device__ int ordered(float v) { const int b = __float_as_int(v); return b >= 0 ? b : b ^ 0x7fffffff; }
__device__ float number(int b) { return __int_as_float(b >= 0 ? b : b ^ 0x7fffffff); }

extern "C" __global__ void k(const float* x, float* y, int n) {
  __shared__ int most, least;
  __shared__ float sums[256];
  const int t = threadIdx.x;
  if (t == 0) {
    most = ordered(V == 1 ? 0.0f : -INFINITY);   // the largest is taken to be positive
    least = ordered(V == 2 ? 0.0f : INFINITY);   // the least is taken to be negative
  }
  __syncthreads();
  float high = -INFINITY, low = INFINITY;
  bool bad = false;
  for (int i = t; i < n; i += 256) {
    const float v = x[i];
    bad |= isnan(v);
    high = fmaxf(high, v);
    low = fminf(low, v);
  }
  if (V == 3) {  // bits of numbers in place of numbers: right if one is positive
    atomicMax(&most, __float_as_int(high));
  } else {
    atomicMax(&most, ordered(high));
  }
  atomicMin(&least, ordered(low));
  __syncthreads();
  const float m = V == 3 ? __int_as_float(most) : number(most);
  // V == 4: exponentials of numbers up to 88 do not overflow, but all may underflow
  const float off = V == 4 ? fmaxf(m, 0.0f) : V == 5 ? x[0] : m;  // V == 5: off by any of them
  float s = 0;
  for (int i = t; i < n; i += 256) s += expf(x[i] - off);
  sums[t] = s;
  __syncthreads();
  for (int h = 128; h; h >>= 1) {
    if (t < h) sums[t] += sums[t + h];
    __syncthreads();
  }
  const int some = __syncthreads_or(bad);
  if (t == 0) {
    y[0] = some ? NAN : m;
    y[1] = some ? NAN : number(least);
    y[2] = some ? NAN : V == 6 ? off + log2f(sums[0]) * 0.6931f : off + logf(sums[0]);
  }
}
