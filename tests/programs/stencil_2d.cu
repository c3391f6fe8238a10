// PolyBench style: a Jacobi stencil over a grid with two-dimensional blocks. Two buffers are
// swapped in a loop.
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define DIM_X 32
#define DIM_Y 8

__global__ void jacobi(int n, const float* a, float* b) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 1 && i < n - 1 && j >= 1 && j < n - 1)
    b[i * n + j] = 0.2f * (a[i * n + j] + a[i * n + j - 1] + a[i * n + j + 1] +
                           a[(i + 1) * n + j] + a[(i - 1) * n + j]);
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 128, steps = argc > 2 ? atoi(argv[2]) : 4;
  std::vector<float> host(n * n);
  for (int i = 0; i < n * n; ++i) host[i] = (i % 97) * 0.25f;
  float *a, *b;
  cudaMalloc(&a, n * n * sizeof(float));
  cudaMalloc(&b, n * n * sizeof(float));
  cudaMemcpy(a, host.data(), n * n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, a, n * n * sizeof(float), cudaMemcpyDeviceToDevice);
  dim3 block(DIM_X, DIM_Y), grid((n + DIM_X - 1) / DIM_X, (n + DIM_Y - 1) / DIM_Y);
  for (int t = 0; t < steps; ++t) {
    jacobi<<<grid, block>>>(n, a, b);
    std::swap(a, b);
  }
  cudaMemcpy(host.data(), a, n * n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float x : host) sum += x;
  printf("sum %.3f\n", sum);
  cudaFree(a);
  cudaFree(b);
}
