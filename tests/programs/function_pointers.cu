// CUDA samples style: the kernel calls a device function through a pointer that is read from a
// device variable.
#include <cstdio>
#include <vector>

typedef float (*Pointwise)(float, float);
__device__ float blend(float a, float b) { return 0.75f * a + 0.25f * b; }
__device__ float larger(float a, float b) { return a > b ? a : b; }
__device__ Pointwise blend_pointer = blend;
__device__ Pointwise larger_pointer = larger;

__global__ void combine(float* out, const float* a, const float* b, int n, Pointwise function) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = function(a[i], b[i]);
}

__global__ void table(float* out, const float* a, int n) {
  Pointwise functions[2] = {blend, larger};
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += functions[i & 1](a[i], 1.0f);
}

int main() {
  const int n = 10000;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = (i % 50) * 0.1f;
  float *a, *b, *out;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemcpy(a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemset(b, 0, n * sizeof(float));
  Pointwise functions[2];
  cudaMemcpyFromSymbol(&functions[0], blend_pointer, sizeof(Pointwise));
  cudaMemcpyFromSymbol(&functions[1], larger_pointer, sizeof(Pointwise));
  combine<<<(n + 255) / 256, 256>>>(b, a, b, n, functions[0]);
  combine<<<(n + 255) / 256, 256>>>(out, a, b, n, functions[1]);
  table<<<(n + 255) / 256, 256>>>(out, a, n);
  cudaMemcpy(host.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : host) sum += v;
  printf("sum %.2f\n", sum);
  cudaFree(a);
  cudaFree(b);
  cudaFree(out);
}
