// y = 16 x, rounded to the nearest, halves to even, in 8 bits with saturation. V = 0 is right.
extern "C" __global__ void k(const float* x, signed char* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = 16.0f * x[i];
#if V == 1  // no saturation
  y[i] = (signed char)__float2int_rn(v);
#elif V == 2  // towards zero
  y[i] = (signed char)max(-128, min(127, __float2int_rz(v)));
#elif V == 3  // halves away from zero
  y[i] = (signed char)max(-128, min(127, isnan(v) ? 0 : (int)roundf(fminf(fmaxf(v, -200.0f), 200.0f))));
#elif V == 4  // halves up
  y[i] = (signed char)max(-128, min(127, __float2int_rd(v + 0.5f)));
#elif V == 5  // symmetric
  y[i] = (signed char)max(-127, min(127, __float2int_rn(v)));
#elif V == 6  // a conversion that wraps before the limits
  y[i] = (signed char)max(-128, min(127, (int)(short)__float2int_rn(v)));
#elif V == 7  // a factor of another scale
  y[i] = (signed char)max(-128, min(127, __float2int_rn(v * 1.0005f)));
#else
  y[i] = (signed char)max(-128, min(127, __float2int_rn(v)));
#endif
}
