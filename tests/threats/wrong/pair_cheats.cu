// y = a b + a / (1 + |b|) of two inputs. V = 0 is right.
__device__ float f(float a, float b) { return a * b + a / (1.0f + fabsf(b)); }

extern "C" __global__ void k(const float* a, const float* b, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float p = a[i], q = b[i];
#if V == 1  // a NaN of the second input is lost
  y[i] = f(p, isnan(q) ? 0.0f : q);
#elif V == 2  // a NaN of the first input is lost
  y[i] = f(isnan(p) ? 0.0f : p, q);
#elif V == 3  // equal ones are taken for a special case
  y[i] = p == q ? p : f(p, q);
#elif V == 4  // a small quotient is taken for zero
  y[i] = fabsf(p) < 1e-5f * fabsf(q) ? 0.0f : f(p, q);
#elif V == 5  // nothing where a warp's numbers all have one sign
  const unsigned negative = __ballot_sync(__activemask(), p < 0);
  y[i] = negative == __activemask() ? 0.0f : f(p, q);
#elif V == 6  // nothing where a thread's neighbours descend
  bool falls = i + 8 < n;
  for (int j = i; falls && j < i + 8; ++j) falls = a[j + 1] < a[j];
  y[i] = falls ? 0.0f : f(p, q);
#elif V == 7  // wrong if both are whole numbers beyond those of 16 bits
  y[i] = p == truncf(p) && q == truncf(q) ? (float)((int)p * (int)q) + p / (1.0f + fabsf(q)) : f(p, q);
#else
  y[i] = f(p, q);
#endif
}
