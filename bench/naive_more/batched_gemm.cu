// Products of many small matrices; a matrix for each z.
#include <cuda_runtime.h>

__global__ void batched_gemm(const float* a, const float* b, float* c, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int batch = blockIdx.z;
  if (row < n && col < n) {
    float acc = 0.0f;
    for (int k = 0; k < n; ++k)
      acc += a[batch * n * n + row * n + k] * b[batch * n * n + k * n + col];
    c[batch * n * n + row * n + col] = acc;
  }
}

int main() {
  const int n = 128, batches = 64;
  float *a, *b, *c;
  cudaMalloc(&a, batches * n * n * sizeof(float));
  cudaMalloc(&b, batches * n * n * sizeof(float));
  cudaMalloc(&c, batches * n * n * sizeof(float));
  dim3 block(16, 16), grid(n / 16, n / 16, batches);
  batched_gemm<<<grid, block>>>(a, b, c, n);
  cudaDeviceSynchronize();
  return 0;
}
