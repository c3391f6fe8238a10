// Unified memory that host and kernels share, a managed variable, and mapped host memory.
#include <cstdio>

__managed__ int threshold = 40;

__global__ void mark(int* flags, const int* values, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) flags[i] = values[i] > threshold;
}
__global__ void weigh(float* out, const float* weights, const int* flags, int n) {
  int stride = blockDim.x * gridDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
    out[i] = flags[i] ? weights[i % 64] : 0.0f;
}

int main() {
  const int n = 12000;
  int *values, *flags;
  float *out, *weights, *mapped;
  cudaMallocManaged(&values, n * sizeof(int));
  cudaMallocManaged(&flags, n * sizeof(int));
  cudaMallocManaged(&out, n * sizeof(float));
  cudaHostAlloc(&weights, 64 * sizeof(float), cudaHostAllocMapped);
  for (int i = 0; i < n; ++i) values[i] = (i * 7) % 90;
  for (int i = 0; i < 64; ++i) weights[i] = i * 0.5f;
  cudaHostGetDevicePointer((void**)&mapped, weights, 0);
  mark<<<(n + 255) / 256, 256>>>(flags, values, n);
  weigh<<<16, 128>>>(out, mapped, flags, n);
  cudaDeviceSynchronize();
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += out[i];
  printf("sum %.2f\n", sum);
  cudaFree(values);
  cudaFree(flags);
  cudaFree(out);
  cudaFreeHost(weights);
}
