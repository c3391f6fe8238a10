// SHOC style: sparse matrix times vector in double precision. The matrix is a structure with
// pointers that is passed by value; one kernel has a thread for each row, one has a warp.
#include <cstdio>
#include <vector>

struct Csr {
  int rows;
  const int* offsets;
  const int* columns;
  const double* values;
};

__global__ void spmv_scalar(Csr m, const double* x, double* y) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m.rows) return;
  double sum = 0;
  for (int i = m.offsets[row]; i < m.offsets[row + 1]; ++i) sum += m.values[i] * x[m.columns[i]];
  y[row] = sum;
}

__global__ void spmv_vector(Csr m, const double* x, double* y) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= m.rows) return;
  double sum = 0;
  for (int i = m.offsets[row] + lane; i < m.offsets[row + 1]; i += 32)
    sum += m.values[i] * x[m.columns[i]];
  for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, d);
  if (lane == 0) y[row] = sum;
}

int main() {
  const int n = 2000;
  std::vector<int> offsets = {0}, columns;
  std::vector<double> values, x(n), y(n);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 5 + i % 40; ++k) {
      columns.push_back((i * 31 + k * 97) % n);
      values.push_back(1.0 / (1 + k));
    }
    offsets.push_back(columns.size());
    x[i] = (i % 11) - 5;
  }
  int *d_offsets, *d_columns;
  double *d_values, *d_x, *d_y;
  cudaMalloc(&d_offsets, offsets.size() * sizeof(int));
  cudaMalloc(&d_columns, columns.size() * sizeof(int));
  cudaMalloc(&d_values, values.size() * sizeof(double));
  cudaMalloc(&d_x, n * sizeof(double));
  cudaMalloc(&d_y, n * sizeof(double));
  cudaMemcpy(d_offsets, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(d_columns, columns.data(), columns.size() * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(d_values, values.data(), values.size() * sizeof(double), cudaMemcpyHostToDevice);
  cudaMemcpy(d_x, x.data(), n * sizeof(double), cudaMemcpyHostToDevice);
  Csr m{n, d_offsets, d_columns, d_values};
  for (bool warps : {false, true}) {
    if (warps)
      spmv_vector<<<(n * 32 + 127) / 128, 128>>>(m, d_x, d_y);
    else
      spmv_scalar<<<(n + 127) / 128, 128>>>(m, d_x, d_y);
    cudaMemcpy(y.data(), d_y, n * sizeof(double), cudaMemcpyDeviceToHost);
    double sum = 0;
    for (double v : y) sum += v;
    printf("sum %.6f\n", sum);
  }
  cudaFree(d_offsets);
  cudaFree(d_columns);
  cudaFree(d_values);
  cudaFree(d_x);
  cudaFree(d_y);
}
