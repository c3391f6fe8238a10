// One compare-and-exchange step of a bitonic sort.
#include <cuda_runtime.h>

__global__ void bitonic(float* data, int n, int distance, int length) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int partner = i ^ distance;
  if (i >= n || partner <= i) return;
  bool ascending = (i & length) == 0;
  float a = data[i], b = data[partner];
  if ((a > b) == ascending) {
    data[i] = b;
    data[partner] = a;
  }
}

int main() {
  const int n = 1 << 20, distance = 4, length = 1024;
  float* data;
  cudaMalloc(&data, n * sizeof(float));
  bitonic<<<(n + 255) / 256, 256>>>(data, n, distance, length);
  cudaDeviceSynchronize();
  return 0;
}
