// Second kernel of PolyBench's atax: y = A^T tmp, one thread a column.
#include <cuda_runtime.h>

#define NX 4096
#define NY 4096
#define DIM_THREAD_BLOCK_X 256
typedef float DATA_TYPE;

__global__ void atax_kernel2(int nx, int ny, DATA_TYPE* A, DATA_TYPE* y, DATA_TYPE* tmp) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < NY) {
    y[j] = 0;
    int i;
    for (i = 0; i < NX; i++) {
      y[j] += A[i * NY + j] * tmp[i];
    }
  }
}

int main() {
  DATA_TYPE *A_gpu, *y_gpu, *tmp_gpu;
  cudaMalloc((void**)&A_gpu, sizeof(DATA_TYPE) * NX * NY);
  cudaMalloc((void**)&y_gpu, sizeof(DATA_TYPE) * NY);
  cudaMalloc((void**)&tmp_gpu, sizeof(DATA_TYPE) * NX);
  dim3 block(DIM_THREAD_BLOCK_X, 1);
  dim3 grid2((size_t)(ceil(((float)NY) / ((float)block.x))), 1);
  atax_kernel2<<<grid2, block>>>(NX, NY, A_gpu, y_gpu, tmp_gpu);
  cudaDeviceSynchronize();
  return 0;
}
