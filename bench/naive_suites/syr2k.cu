// PolyBench's syr2k: C = beta C + alpha A B^T + alpha B A^T.
#include <cuda_runtime.h>

__global__ void syr2k_kernel(int n, int m, float alpha, float beta, float* a, float* b, float* c) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if ((i < n) && (j < n)) {
    c[i * n + j] *= beta;
    for (int k = 0; k < m; k++) {
      c[i * n + j] += alpha * a[i * m + k] * b[j * m + k] + alpha * b[i * m + k] * a[j * m + k];
    }
  }
}

int main() {
  int n = 512, m = 256;
  float *a, *b, *c;
  cudaMalloc(&a, n * m * sizeof(float));
  cudaMalloc(&b, n * m * sizeof(float));
  cudaMalloc(&c, n * n * sizeof(float));
  dim3 block(32, 8);
  dim3 grid(n / block.x, n / block.y);
  syr2k_kernel<<<grid, block>>>(n, m, 1.5f, 1.2f, a, b, c);
  cudaDeviceSynchronize();
  return 0;
}
