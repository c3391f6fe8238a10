// Gradient of a bias: sums over batch and pixels, one thread a channel; NCHW.
#include <cuda_runtime.h>

__global__ void bias_grad(const float* dy, float* db, int batch, int channels, int pixels) {
  int c = threadIdx.x + blockIdx.x * blockDim.x;
  if (c < channels) {
    float sum = 0;
    for (int n = 0; n < batch; n++)
      for (int p = 0; p < pixels; p++) sum += dy[(n * channels + c) * pixels + p];
    db[c] = sum;
  }
}

int main() {
  const int batch = 16, channels = 256, pixels = 32 * 32;
  float *dy, *db;
  cudaMalloc(&dy, batch * channels * pixels * sizeof(float));
  cudaMalloc(&db, channels * sizeof(float));
  bias_grad<<<channels / 64, 64>>>(dy, db, batch, channels, pixels);
  cudaDeviceSynchronize();
  return 0;
}
