// First product of PolyBench's 2mm: tmp = alpha * A * B.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define NI 1024
#define NJ 1024
#define NK 512
#define DIM_THREAD_BLOCK_X 32
#define DIM_THREAD_BLOCK_Y 8
typedef float DATA_TYPE;

__global__ void mm2_kernel1(int ni, int nj, int nk, DATA_TYPE alpha, DATA_TYPE* tmp, DATA_TYPE* A,
                            DATA_TYPE* B) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if ((i < NI) && (j < NJ)) {
    tmp[i * NJ + j] = 0;
    int k;
    for (k = 0; k < NK; k++) {
      tmp[i * NJ + j] += alpha * A[i * NK + k] * B[k * NJ + j];
    }
  }
}

int main() {
  DATA_TYPE *A_gpu, *B_gpu, *tmp_gpu;
  cudaMalloc((void**)&A_gpu, sizeof(DATA_TYPE) * NI * NK);
  cudaMalloc((void**)&B_gpu, sizeof(DATA_TYPE) * NK * NJ);
  cudaMalloc((void**)&tmp_gpu, sizeof(DATA_TYPE) * NI * NJ);
  dim3 block(DIM_THREAD_BLOCK_X, DIM_THREAD_BLOCK_Y);
  dim3 grid1((size_t)ceil(((float)NJ) / ((float)block.x)),
             (size_t)ceil(((float)NI) / ((float)block.y)));
  mm2_kernel1<<<grid1, block>>>(NI, NJ, NK, 1.5f, tmp_gpu, A_gpu, B_gpu);
  cudaDeviceSynchronize();
  return 0;
}
