// Rodinia style: LU decomposition in place, in a loop whose grids shrink from step to step.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void scale_column(float* m, int n, int k) {
  int i = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) m[i * n + k] /= m[k * n + k];
}

__global__ void update_rest(float* m, int n, int k) {
  int j = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
  int i = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
  if (i < n && j < n) m[i * n + j] -= m[i * n + k] * m[k * n + j];
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 96;
  std::vector<float> host(n * n);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) host[i * n + j] = i == j ? n : 1.0f / (1 + abs(i - j));
  float* m;
  cudaMalloc((void**)&m, n * n * sizeof(float));
  cudaMemcpy(m, host.data(), n * n * sizeof(float), cudaMemcpyHostToDevice);
  for (int k = 0; k < n - 1; ++k) {
    int left = n - k - 1;
    scale_column<<<(left + 63) / 64, 64>>>(m, n, k);
    update_rest<<<dim3((left + 15) / 16, (left + 15) / 16), dim3(16, 16)>>>(m, n, k);
  }
  cudaMemcpy(host.data(), m, n * n * sizeof(float), cudaMemcpyDeviceToHost);
  double log_det = 0;
  for (int i = 0; i < n; ++i) log_det += std::log(std::fabs(host[i * n + i]));
  printf("log det %.4f\n", log_det);
  cudaFree(m);
}
