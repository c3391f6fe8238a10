// CUDA samples style: a tiled matrix product and a transposition through shared memory, both
// templates over the tile's size.
#include <cstdio>
#include <cstdlib>
#include <vector>

template <int TILE>
__global__ void matmul(float* c, const float* a, const float* b, int n) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n / TILE; ++t) {
    as[threadIdx.y][threadIdx.x] = a[row * n + t * TILE + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(t * TILE + threadIdx.y) * n + col];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

template <int TILE, int ROWS>
__global__ void transpose(float* out, const float* in, int n) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 128;
  size_t bytes = n * n * sizeof(float);
  std::vector<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; ++i) {
    a[i] = (i % 13) * 0.5f;
    b[i] = (i % 7) - 3;
  }
  float *da, *db, *dc, *dt;
  cudaMalloc(&da, bytes);
  cudaMalloc(&db, bytes);
  cudaMalloc(&dc, bytes);
  cudaMalloc(&dt, bytes);
  cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice);
  transpose<32, 8><<<dim3(n / 32, n / 32), dim3(32, 8)>>>(dt, db, n);
  matmul<16><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(dc, da, dt, n);
  cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n * n; ++i) sum += c[i] * (i % 5);
  printf("sum %.1f\n", sum);
  cudaFree(da);
  cudaFree(db);
  cudaFree(dc);
  cudaFree(dt);
}
