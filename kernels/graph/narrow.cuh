// Scalar functions for results that are rounded to 16 bits: two instructions of the special
// function unit and a short polynomial each. Relative errors stay under 2^-14, an eighth of a
// half's rounding (kernels in float16 and bfloat16).
DEVICE float reciprocal_narrow(float v) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
/// Two units of roundoff off at most, without the branch of a rounded quotient.
DEVICE float quotient_narrow(float a, float b) {
  float q;
  asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(a), "f"(b));
  return q;
}
DEVICE float exp_narrow(float v) { return power_of_two(v * 1.4426950408889634f); }
/// e^v - 1; near 0, where that cancels, its series.
DEVICE float expm1_narrow(float v) {
  const float near = fmaf(v * v, fmaf(v, fmaf(v, 0.041666668f, 0.16666667f), 0.5f), v);
  return fabsf(v) < 0.25f ? near : exp_narrow(v) - 1.0f;
}
DEVICE float sigmoid_narrow(float v) {
  return reciprocal_narrow(1.0f + power_of_two(v * -1.4426950408889634f));
}

/// log(1 + v) for small v.
DEVICE float log1p_near(float v) { return fmaf(v * v, fmaf(v, 0.33333334f, -0.5f), v); }
DEVICE float log_far(float v) {
  float r;
  asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r * 0.69314718f;
}
/// The logarithm's error is absolute: near 1 the series.
DEVICE float log_narrow(float v) {
  return fabsf(v - 1.0f) < 0.015625f ? log1p_near(v - 1.0f) : log_far(v);
}
DEVICE float log1p_narrow(float v) {
  return fabsf(v) < 0.015625f ? log1p_near(v) : log_far(1.0f + v);
}

/// (1 - e^(-2|v|)) / (1 + e^(-2|v|)); near 0, where that cancels, its series.
DEVICE float tanh_narrow(float v) {
  const float s = v * v;
  const float near = fmaf(v * s, fmaf(s, 0.13333334f, -0.33333334f), v);
  const float e = power_of_two(fabsf(v) * -2.885390081777927f);
  const float far = copysignf((1.0f - e) * reciprocal_narrow(1.0f + e), v);
  return fabsf(v) < 0.2f ? near : far;
}

/// Abramowitz and Stegun 7.1.26 (absolute error 1.5e-7); near 0 the series.
DEVICE float erf_narrow(float v) {
  const float s = v * v;
  const float near = v * fmaf(s, fmaf(s, 0.11283792f, -0.37612638f), 1.1283792f);
  const float t = reciprocal_narrow(fmaf(fabsf(v), 0.3275911f, 1.0f));
  const float p = t * fmaf(t,
                           fmaf(t, fmaf(t, fmaf(t, 1.061405429f, -1.453152027f), 1.421413741f),
                                -0.284496736f),
                           0.254829592f);
  const float far = copysignf(fmaf(-p, power_of_two(s * -1.4426950408889634f), 1.0f), v);
  return fabsf(v) < 0.2f ? near : far;
}
