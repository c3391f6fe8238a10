// Rodinia style: blocks of two dimensions whose size the kernel reads, a launch for each column.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void multipliers(float* m, const float* a, int n, int t) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n - 1 - t) return;
  int row = i + t + 1;
  m[n * row + t] = a[n * row + t] / a[n * t + t];
}

__global__ void eliminate(const float* m, float* a, float* b, int n, int t) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n - 1 - t || j >= n - t) return;
  int row = i + t + 1;
  a[n * row + j + t] -= m[n * row + t] * a[n * t + j + t];
  if (j == 0) b[row] -= m[n * row + t] * b[t];
}

/// Grid-stride, so that any number of blocks is right.
__global__ void scale(float* v, float by, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    v[i] *= by;
}

int main() {
  const int n = 24;
  std::vector<float> a(n * n), b(n, 1.0f);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) a[i * n + j] = 10.0f / (1 + std::abs(i - j));
  float *m, *device_a, *device_b;
  cudaMalloc(&m, n * n * sizeof(float));
  cudaMalloc(&device_a, n * n * sizeof(float));
  cudaMalloc(&device_b, n * sizeof(float));
  cudaMemset(m, 0, n * n * sizeof(float));
  cudaMemcpy(device_a, a.data(), n * n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(device_b, b.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  for (int t = 0; t < n - 1; ++t) {
    multipliers<<<1, 64>>>(m, device_a, n, t);
    eliminate<<<dim3((n + 3) / 4, (n + 3) / 4), dim3(4, 4)>>>(m, device_a, device_b, n, t);
  }
  scale<<<2, 128>>>(device_a, 0.5f, n * n);
  cudaMemcpy(a.data(), device_a, n * n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(b.data(), device_b, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float x : a) sum += x;
  for (float x : b) sum += x;
  printf("sum %.3f\n", sum);
  cudaFree(m);
  cudaFree(device_a);
  cudaFree(device_b);
}
