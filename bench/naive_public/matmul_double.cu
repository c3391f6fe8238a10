// Product of square matrices of doubles; x and y swapped, a width in place of three sizes.
#include <cuda_runtime.h>

__global__ void MatMulKernel(double* P, double* M, double* N, int Width) {
  int Row = blockIdx.x * blockDim.x + threadIdx.x;
  int Col = blockIdx.y * blockDim.y + threadIdx.y;
  if ((Row < Width) && (Col < Width)) {
    double Pvalue = 0;
    for (int k = 0; k < Width; ++k) Pvalue += M[Row * Width + k] * N[k * Width + Col];
    P[Row * Width + Col] = Pvalue;
  }
}

int main() {
  int Width = 512;
  size_t size = Width * Width * sizeof(double);
  double *P, *M, *N;
  cudaMalloc((void**)&P, size);
  cudaMalloc((void**)&M, size);
  cudaMalloc((void**)&N, size);
  dim3 dimBlock(16, 16);
  dim3 dimGrid(Width / 16, Width / 16);
  MatMulKernel<<<dimGrid, dimBlock>>>(P, M, N, Width);
  cudaDeviceSynchronize();
  return 0;
}
