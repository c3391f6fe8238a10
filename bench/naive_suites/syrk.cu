// PolyBench's syrk: C = beta C + alpha A A^T.
#include <cuda_runtime.h>

#define N 1024
#define M 512
typedef float DATA_TYPE;

__global__ void syrk_kernel(DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE* a, DATA_TYPE* c) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if ((i < N) && (j < N)) {
    c[i * N + j] *= beta;
    int k;
    for (k = 0; k < M; k++) {
      c[i * N + j] += alpha * a[i * M + k] * a[j * M + k];
    }
  }
}

int main() {
  DATA_TYPE *A_gpu, *C_gpu;
  cudaMalloc((void**)&A_gpu, sizeof(DATA_TYPE) * N * M);
  cudaMalloc((void**)&C_gpu, sizeof(DATA_TYPE) * N * N);
  dim3 block(32, 8);
  dim3 grid(N / 32, N / 8);
  syrk_kernel<<<grid, block>>>(1.1f, 0.9f, A_gpu, C_gpu);
  cudaDeviceSynchronize();
  return 0;
}
