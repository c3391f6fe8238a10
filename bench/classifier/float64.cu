// Arithmetic in float64 that float32 does as well.
#include <cuda_runtime.h>

#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x

__global__ void chain(float* y, const float* x) {
  INDEX;
  double v = x[i];
  for (int k = 0; k < 200; ++k) v = v * 1.0001 + 0.5;
  y[i] = v;
}
__global__ void chain_mended(float* y, const float* x) {
  INDEX;
  float v = x[i];
  for (int k = 0; k < 200; ++k) v = v * 1.0001f + 0.5f;
  y[i] = v;
}

__global__ void functions(float* y, const float* x) {
  INDEX;
  y[i] = (float)sqrt(x[i] * x[i] + 1.0) * 3.0 + exp((double)x[i]);
}
__global__ void functions_mended(float* y, const float* x) {
  INDEX;
  y[i] = sqrtf(x[i] * x[i] + 1.0f) * 3.0f + expf(x[i]);
}

__global__ void literals(float* y, const float* x) {
  INDEX;
  float v = x[i];
  for (int k = 0; k < 64; ++k) v = 0.5 * v + 0.25 * v * v - 0.125;
  y[i] = v;
}
__global__ void literals_mended(float* y, const float* x) {
  INDEX;
  float v = x[i];
  for (int k = 0; k < 64; ++k) v = 0.5f * v + 0.25f * v * v - 0.125f;
  y[i] = v;
}

__global__ void polynomial(float* y, const float* x) {
  INDEX;
  double v = x[i], s = 0;
  for (int k = 1; k < 100; ++k) s = s * v + 1.0 * k;
  y[i] = s;
}
__global__ void polynomial_mended(float* y, const float* x) {
  INDEX;
  float v = x[i], s = 0;
  for (int k = 1; k < 100; ++k) s = s * v + 1.0f * k;
  y[i] = s;
}

int main() {
  const int n = 1048576;
  float *y, *x;
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  chain<<<n / 256, 256>>>(y, x);
  chain_mended<<<n / 256, 256>>>(y, x);
  functions<<<n / 256, 256>>>(y, x);
  functions_mended<<<n / 256, 256>>>(y, x);
  literals<<<n / 256, 256>>>(y, x);
  literals_mended<<<n / 256, 256>>>(y, x);
  polynomial<<<n / 256, 256>>>(y, x);
  polynomial_mended<<<n / 256, 256>>>(y, x);
}
