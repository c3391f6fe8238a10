// Root mean square normalisation; a block for each row, but thread 0 adds up alone.
#include <cuda_runtime.h>

__global__ void rmsnorm(float* o, const float* x, const float* weight, int size) {
  __shared__ float ss;
  const float* row = x + (size_t)blockIdx.x * size;
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int j = 0; j < size; j++) sum += row[j] * row[j];
    ss = 1.0f / sqrtf(sum / size + 1e-5f);
  }
  __syncthreads();
  for (int j = threadIdx.x; j < size; j += blockDim.x)
    o[(size_t)blockIdx.x * size + j] = weight[j] * (ss * row[j]);
}

int main() {
  const int rows = 2048, size = 1024;
  float *o, *x, *weight;
  cudaMalloc(&o, rows * size * sizeof(float));
  cudaMalloc(&x, rows * size * sizeof(float));
  cudaMalloc(&weight, size * sizeof(float));
  rmsnorm<<<rows, 256>>>(o, x, weight, size);
  cudaDeviceSynchronize();
  return 0;
}
