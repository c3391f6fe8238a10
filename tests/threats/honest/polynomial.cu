// A polynomial of degree 5.
extern "C" __global__ void k(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const float v = fminf(fmaxf(x[i], -1.0f), 1.0f);
#if V == 0  // Horner
  y[i] = ((((0.1f * v + 0.2f) * v + 0.3f) * v + 0.4f) * v + 0.5f) * v + 2.0f;
#elif V == 1  // Estrin
  const float q = v * v;
  y[i] = (0.5f * v + 2.0f) + q * ((0.3f * v + 0.4f) + q * (0.1f * v + 0.2f));
#elif V == 2  // no fused multiply-add
  float s = 0.1f;
  s = __fadd_rn(__fmul_rn(s, v), 0.2f);
  s = __fadd_rn(__fmul_rn(s, v), 0.3f);
  s = __fadd_rn(__fmul_rn(s, v), 0.4f);
  s = __fadd_rn(__fmul_rn(s, v), 0.5f);
  y[i] = __fadd_rn(__fmul_rn(s, v), 2.0f);
#else  // double
  const double d = v;
  y[i] = (float)(((((0.1f * d + 0.2f) * d + 0.3f) * d + 0.4f) * d + 0.5f) * d + 2.0);
#endif
}
