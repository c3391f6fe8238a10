// What convolutions expect of a main loop, with fused multiply-adds (simt_tile.cuh): a tile of the result is multiplied, then stored where
// conv_geometry.cuh says.
typedef float OUT;
constexpr int A_BYTES = A_SIZE * 16, RESIDENT = 1;
constexpr bool PERSISTENT = false;

template <class Fetch, class Finish>
DEVICE void multiply_tiles(unsigned char* shared, int tiles, int, Sums& sums, const Fetch& fetch, const Finish& finish) {
  multiply_tiles((float4*)shared, tiles, sums, fetch);
  finish();
}
DEVICE void store_result(unsigned char*, const Sums& sums, float* y, Tile tile, long long m, long long n) {
  if (SPLIT_K > 1) y += blockIdx.y * share_elements(m, n);
  const int x = threadIdx.x % THREADS_N, from = threadIdx.x / THREADS_N;
  UNROLLED for (int i = 0; i < THREAD_M; ++i) {
    const long long row = tile.row + from + i * THREADS_M;
    UNROLLED for (int j = 0; j < THREAD_N; ++j) {
      const long long column = tile.column + column_of(x, j);
      if (row < m && column < n) put_element(y, row, column, m, n, sums[i][j]);
    }
  }
}
DEVICE void leave() {}
