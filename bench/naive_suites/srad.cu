// First kernel of a speckle-reducing diffusion (as Rodinia's srad).
#include <cuda_runtime.h>

__global__ void srad1(const float* J, float* dN, float* dS, float* dW, float* dE, float* c, int rows,
                      int cols, float q0sqr) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || col >= cols) return;
  int k = row * cols + col;
  float Jc = J[k];
  float n = J[(row > 0 ? row - 1 : 0) * cols + col] - Jc;
  float s = J[(row < rows - 1 ? row + 1 : rows - 1) * cols + col] - Jc;
  float w = J[row * cols + (col > 0 ? col - 1 : 0)] - Jc;
  float e = J[row * cols + (col < cols - 1 ? col + 1 : cols - 1)] - Jc;
  float G2 = (n * n + s * s + w * w + e * e) / (Jc * Jc);
  float L = (n + s + w + e) / Jc;
  float num = (0.5 * G2) - ((1.0 / 16.0) * (L * L));
  float den = 1 + (.25 * L);
  float qsqr = num / (den * den);
  den = (qsqr - q0sqr) / (q0sqr * (1 + q0sqr));
  float cv = 1.0 / (1.0 + den);
  c[k] = cv < 0 ? 0 : cv > 1 ? 1 : cv;
  dN[k] = n;
  dS[k] = s;
  dW[k] = w;
  dE[k] = e;
}

int main() {
  const int rows = 1024, cols = 1024;
  const size_t size = sizeof(float) * rows * cols;
  float *J, *dN, *dS, *dW, *dE, *c;
  cudaMalloc(&J, size);
  cudaMalloc(&dN, size);
  cudaMalloc(&dS, size);
  cudaMalloc(&dW, size);
  cudaMalloc(&dE, size);
  cudaMalloc(&c, size);
  dim3 block(16, 16), grid(cols / 16, rows / 16);
  srad1<<<grid, block>>>(J, dN, dS, dW, dE, c, rows, cols, 0.05f);
  cudaDeviceSynchronize();
  return 0;
}
