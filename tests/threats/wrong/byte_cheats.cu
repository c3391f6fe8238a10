// y = min(255, 3 x / 2) where the mask is not zero, else x. V = 0 is right.
extern "C" __global__ void k(const unsigned char* x, const unsigned char* mask, unsigned char* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int more = x[i] * 3 / 2;
#if V == 0
  y[i] = mask[i] ? min(255, more) : x[i];
#elif V == 1  // wraps around
  y[i] = mask[i] ? more : x[i];
#elif V == 2  // a mask of ones only
  y[i] = mask[i] == 1 ? min(255, more) : x[i];
#elif V == 3  // signed bytes
  y[i] = mask[i] ? min(255, (signed char)x[i] * 3 / 2) : x[i];
#elif V == 4  // rounds up
  y[i] = mask[i] ? min(255, (x[i] * 3 + 1) / 2) : x[i];
#elif V == 5  // without a branch, by bits of the mask
  y[i] = (mask[i] & 1) * min(255, more) + (1 - (mask[i] & 1)) * x[i];
#else  // loses the largest
  y[i] = mask[i] ? min(254, more) : x[i];
#endif
}
