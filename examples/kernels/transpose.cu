// A tiled transposition whose tile is a macro that kernel and launch share.
#ifndef TILE
#define TILE 16
#endif
#ifndef PAD
#define PAD 0
#endif

__global__ void transpose(const float* __restrict__ in, float* __restrict__ out, int rows, int columns) {
  __shared__ float tile[TILE][TILE + PAD];
  int x = blockIdx.x * TILE + threadIdx.x;
  int y = blockIdx.y * TILE + threadIdx.y;
  if (x < columns && y < rows) tile[threadIdx.y][threadIdx.x] = in[y * columns + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x][threadIdx.y];
}

void run(int rows = 1000, int columns = 1500) {
  float *in, *out;
  size_t bytes = sizeof(float) * rows * columns;
  cudaMalloc(&in, bytes);
  cudaMalloc(&out, bytes);
  dim3 block(TILE, TILE);
  dim3 grid((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
  transpose<<<grid, block>>>(in, out, rows, columns);
}
