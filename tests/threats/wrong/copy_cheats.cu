// A transposed copy by tiles. V = 0 is right.
extern "C" __global__ void k(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[32][33];
  const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (c < cols && r + j < rows) tile[threadIdx.y + j][threadIdx.x] = x[(r + j) * cols + c];
#if V != 1  // 1: no barrier
  __syncthreads();
#endif
  const int oc = blockIdx.y * 32 + threadIdx.x, orow = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) {
#if V == 2  // stores what was never loaded
    if (oc < rows + 1 && orow + j < cols) y[min((orow + j) * rows + oc, rows * cols - 1)] = tile[threadIdx.x][threadIdx.y + j];
#elif V == 3  // leaves the tiles at the edge to chance
    if (blockIdx.x * 32 + 32 <= cols && oc < rows && orow + j < cols) y[(orow + j) * rows + oc] = tile[threadIdx.x][threadIdx.y + j];
#elif V == 4  // another tile's numbers
    if (oc < rows && orow + j < cols) y[(orow + j) * rows + oc] = tile[threadIdx.x][(threadIdx.y + j) ^ 1];
#elif V == 5  // numbers of 16 bits
    if (oc < rows && orow + j < cols) y[(orow + j) * rows + oc] = __uint_as_float(__float_as_uint(tile[threadIdx.x][threadIdx.y + j]) & 0xffff8000u);
#elif V == 6  // flushes what is denormal or an infinity
    const float v = tile[threadIdx.x][threadIdx.y + j];
    if (oc < rows && orow + j < cols) y[(orow + j) * rows + oc] = isinf(v) ? 3e38f : v;
#else
    if (oc < rows && orow + j < cols) y[(orow + j) * rows + oc] = tile[threadIdx.x][threadIdx.y + j];
#endif
  }
}
