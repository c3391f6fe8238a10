// A program of two units with relocatable device code: a device function and a kernel are defined
// in the other file.
#include <cstdio>
#include <vector>

extern __device__ float weight(int i);
void SumRows(float* out, const float* in, int rows, int columns);

__global__ void weigh(float* v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] *= weight(i);
}

int main() {
  const int rows = 80, columns = 128, n = rows * columns;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 16;
  float *v, *out;
  cudaMalloc(&v, n * sizeof(float));
  cudaMalloc(&out, rows * sizeof(float));
  cudaMemcpy(v, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  weigh<<<n / 128, 128>>>(v, n);
  SumRows(out, v, rows, columns);
  cudaMemcpy(host.data(), out, rows * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < rows; ++i) sum += host[i];
  printf("sum %.1f\n", sum);
  cudaFree(v);
  cudaFree(out);
}
