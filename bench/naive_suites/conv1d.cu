// A 1-D convolution with the mask in a buffer, zero outside (from an introduction to CUDA).
#include <cuda_runtime.h>

__global__ void convolution_1D_basic_kernel(float* N, float* M, float* P, int Mask_Width,
                                            int Width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float Pvalue = 0;
  int N_start_point = i - (Mask_Width / 2);
  for (int j = 0; j < Mask_Width; j++) {
    if (N_start_point + j >= 0 && N_start_point + j < Width) {
      Pvalue += N[N_start_point + j] * M[j];
    }
  }
  if (i < Width) P[i] = Pvalue;
}

int main() {
  int Width = 1 << 20, Mask_Width = 31;
  float *N, *M, *P;
  cudaMalloc(&N, Width * sizeof(float));
  cudaMalloc(&M, Mask_Width * sizeof(float));
  cudaMalloc(&P, Width * sizeof(float));
  convolution_1D_basic_kernel<<<(Width + 255) / 256, 256>>>(N, M, P, Mask_Width, Width);
  cudaDeviceSynchronize();
  return 0;
}
