// The standard deviations of PolyBench's correlation; one thread a column.
#include <cuda_runtime.h>
#include <math.h>

#define M 2048
#define N 2048
#define FLOAT_N 3214212.01f
#define EPS 0.005f

__global__ void std_kernel(float* mean, float* std, float* data) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < M) {
    std[j] = 0.0f;
    int i;
    for (i = 0; i < N; i++) {
      std[j] += (data[i * M + j] - mean[j]) * (data[i * M + j] - mean[j]);
    }
    std[j] /= (FLOAT_N);
    std[j] = sqrtf(std[j]);
    if (std[j] <= EPS) {
      std[j] = 1.0f;
    }
  }
}

int main() {
  float *data, *mean, *std;
  cudaMalloc((void**)&data, sizeof(float) * M * N);
  cudaMalloc((void**)&mean, sizeof(float) * M);
  cudaMalloc((void**)&std, sizeof(float) * M);
  dim3 block2(256, 1);
  dim3 grid2((size_t)ceil((float)(M) / ((float)256)), 1);
  std_kernel<<<grid2, block2>>>(mean, std, data);
  cudaDeviceSynchronize();
  return 0;
}
