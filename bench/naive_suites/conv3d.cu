// PolyBench's 3-D convolution, one plane per launch.
#include <cuda_runtime.h>

#define NI 256
#define NJ 256
#define NK 256

__global__ void convolution3D_kernel(int ni, int nj, int nk, float* A, float* B, int i) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;

  float c11, c12, c13, c21, c22, c23, c31, c32, c33;

  c11 = +2;  c21 = +5;  c31 = -8;
  c12 = -3;  c22 = +6;  c32 = -9;
  c13 = +4;  c23 = +7;  c33 = +10;

  if ((i < (NI - 1)) && (j < (NJ - 1)) && (k < (NK - 1)) && (i > 0) && (j > 0) && (k > 0)) {
    B[i * (NK * NJ) + j * NK + k] =
        c11 * A[(i - 1) * (NK * NJ) + (j - 1) * NK + (k - 1)] +
        c13 * A[(i + 1) * (NK * NJ) + (j - 1) * NK + (k - 1)] +
        c21 * A[(i - 1) * (NK * NJ) + (j - 1) * NK + (k - 1)] +
        c23 * A[(i + 1) * (NK * NJ) + (j - 1) * NK + (k - 1)] +
        c31 * A[(i - 1) * (NK * NJ) + (j - 1) * NK + (k - 1)] +
        c33 * A[(i + 1) * (NK * NJ) + (j - 1) * NK + (k - 1)] +
        c12 * A[(i + 0) * (NK * NJ) + (j - 1) * NK + (k + 0)] +
        c22 * A[(i + 0) * (NK * NJ) + (j + 0) * NK + (k + 0)] +
        c32 * A[(i + 0) * (NK * NJ) + (j + 1) * NK + (k + 0)] +
        c11 * A[(i - 1) * (NK * NJ) + (j - 1) * NK + (k + 1)] +
        c13 * A[(i + 1) * (NK * NJ) + (j - 1) * NK + (k + 1)];
  }
}

int main() {
  float *A_gpu, *B_gpu;
  cudaMalloc((void**)&A_gpu, sizeof(float) * NI * NJ * NK);
  cudaMalloc((void**)&B_gpu, sizeof(float) * NI * NJ * NK);
  dim3 block(32, 8);
  dim3 grid(NK / 32, NJ / 8);
  convolution3D_kernel<<<grid, block>>>(NI, NJ, NK, A_gpu, B_gpu, 100);
  cudaDeviceSynchronize();
  return 0;
}
