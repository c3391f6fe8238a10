// Eleven functions of each x. V = 0 is right; with V = j + 1 function j is the usual wrong
// shortcut.
#define FUNCTION(j, right, wrong) y[(j) * n + i] = V == (j) + 1 ? (wrong) : (right);

extern "C" __global__ void k(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i], w = 2.0f * v + 1.0f;
  FUNCTION(0, log1pf(v * v * 1e-3f), logf(1.0f + v * v * 1e-3f))
  FUNCTION(1, expm1f(v * 1e-3f), expf(v * 1e-3f) - 1.0f)
  FUNCTION(2, tanhf(v), (expf(2 * v) - 1.0f) / (expf(2 * v) + 1.0f))
  FUNCTION(3, fmaxf(v, 0.0f) + log1pf(expf(-fabsf(v))), logf(1.0f + expf(v)))
  FUNCTION(4, hypotf(v, w), sqrtf(v * v + w * w))
  FUNCTION(5, 0.5f * v * (1.0f + erff(v * 0.70710678f)), 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v))))
  FUNCTION(6, cbrtf(v), powf(v, 1.0f / 3.0f))
  FUNCTION(7, fmodf(v, 0.3f), v - 0.3f * floorf(v / 0.3f))
  FUNCTION(8, rintf(4 * v), roundf(4 * v))
  FUNCTION(9, atan2f(v, w), atanf(v / w))
  FUNCTION(10, 1.0f / (1.0f + expf(-v)), 0.5f + v * (0.25f - v * v * (1.0f / 48)))
}
