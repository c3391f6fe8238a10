// Prices of call options by Black and Scholes, with constants of type double.
#include <cuda_runtime.h>

__global__ void black_scholes(float* call, const float* price, const float* strike,
                              const float* years, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = fabsf(price[i]) + 1.0;
  float x = fabsf(strike[i]) + 1.0;
  float t = fabsf(years[i]) + 0.25;
  float root = 0.3 * sqrtf(t);
  float d1 = (logf(s / x) + (0.02 + 0.5 * 0.3 * 0.3) * t) / root;
  float d2 = d1 - root;
  float n1 = 0.5 * (1.0 + erff(d1 * 0.70710678));
  float n2 = 0.5 * (1.0 + erff(d2 * 0.70710678));
  call[i] = s * n1 - x * expf(-0.02 * t) * n2;
}

int main() {
  const int n = 1 << 20;
  float *call, *price, *strike, *years;
  cudaMalloc(&call, n * sizeof(float));
  cudaMalloc(&price, n * sizeof(float));
  cudaMalloc(&strike, n * sizeof(float));
  cudaMalloc(&years, n * sizeof(float));
  black_scholes<<<(n + 255) / 256, 256>>>(call, price, strike, years, n);
  cudaDeviceSynchronize();
  return 0;
}
