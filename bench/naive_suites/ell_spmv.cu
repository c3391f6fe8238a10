// Product of a sparse matrix in ELLPACK layout, stored by rows (uncoalesced), with a vector.
#include <cuda_runtime.h>

__global__ void spmv_ell(const float* values, const int* columns, const float* x, float* y, int rows,
                         int width) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float dot = 0;
    for (int k = 0; k < width; k++) {
      int at = row * width + k;
      dot += values[at] * x[columns[at]];
    }
    y[row] = dot;
  }
}

int main() {
  const int rows = 65536, width = 32;
  float *values, *x, *y;
  int* columns;
  cudaMalloc(&values, rows * width * sizeof(float));
  cudaMalloc(&columns, rows * width * sizeof(int));
  cudaMalloc(&x, rows * sizeof(float));
  cudaMalloc(&y, rows * sizeof(float));
  spmv_ell<<<rows / 256, 256>>>(values, columns, x, y, rows, width);
  cudaDeviceSynchronize();
  return 0;
}
