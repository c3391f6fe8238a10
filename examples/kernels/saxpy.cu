// A whole program as people write it. Nothing here is made for a tuner:
//   atunner hardware-optimize --source examples/kernels/saxpy.cu --target-gpu A100 --auto-tune
#include <cstdio>
#include <vector>

__global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

int main() {
  const int n = 1 << 20;
  std::vector<float> host(n, 1.0f);
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(y, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  const int threads = 256;
  saxpy<<<(n + threads - 1) / threads, threads>>>(2.0f, x, y, n);
  cudaMemcpy(host.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("%f\n", host[0]);
  cudaFree(x);
  cudaFree(y);
}
