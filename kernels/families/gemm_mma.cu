// c[m, n] = a[m, k] · b[k, n], row-major throughout. Rows of a have lda elements, rows of b ldb: k and n, or more where they
// were widened. With SPLIT_K > 1 a block sums one of SPLIT_K stretches of k into its share.
extern "C" __global__ void __launch_bounds__(THREADS) gemm(const T* __restrict__ a, const T* __restrict__ b, OUT* __restrict__ c,
                                                          long long m, long long n, long long k, long long lda, long long ldb) {
  extern __shared__ __align__(128) unsigned char shared[];
  const Tile tile = tile_of_block(m, n);
  const int tiles = (int)((k + TILE_K - 1) / TILE_K);
  const int first = (int)((long long)tiles * blockIdx.y / SPLIT_K);
  const int last = (int)((long long)tiles * (blockIdx.y + 1) / SPLIT_K);
  RowWalker<TILE_M, A_ALIGN> rows(a, lda, m, tile.row, first * TILE_K, (int)k);
  ColumnWalker<TILE_N, B_ALIGN> columns(b, ldb, tile.column, first * TILE_K, (int)k);
  Sums sums;
  multiply_tiles(shared, last - first, sums, [&](int at) {
    rows.fetch(shared, at);
    columns.fetch(shared, at + A_BYTES, ldb);
  });
#if SPLIT_K > 1
  store_share(sums, c + blockIdx.y * m * n, tile, m, n);
#else
  store_tile(shared, sums, c, tile, m, n);
#endif
}
