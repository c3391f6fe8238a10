// c[m, n] = a[m, k] · b[k, n] in float32, row-major throughout. With SPLIT_K > 1 a block sums one of SPLIT_K stretches of k
// into its share.
extern "C" __global__ void __launch_bounds__(THREADS) gemm(const float* __restrict__ a, const float* __restrict__ b,
                                                          float* __restrict__ c, long long m, long long n, long long k) {
  extern __shared__ float4 shared[];
  const Tile tile = tile_of_block(m, n);
  const int tiles = (int)((k + TILE_K - 1) / TILE_K);
  const int first = (int)((long long)tiles * blockIdx.y / SPLIT_K);
  const int last = (int)((long long)tiles * (blockIdx.y + 1) / SPLIT_K);
  RowWalker<TILE_M, A_ALIGNED ? 4 : 1> rows(a, k, m, tile.row, first * TILE_K, (int)k);
  ColumnWalker<TILE_N, C_ALIGNED ? 4 : 1> columns(b, n, tile.column, first * TILE_K, (int)k);
  Sums sums;
  multiply_tiles(shared, last - first, sums, [&](int at) {
    rows.fetch((unsigned char*)shared, at);
    columns.fetch((unsigned char*)shared, at + A_SIZE * 16, n);
  });
  store_tile(sums, c + blockIdx.y * m * n, tile, m, n);
}
