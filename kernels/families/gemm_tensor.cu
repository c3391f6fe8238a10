// c[m, n] = a[m, k] · b[k, n], row-major throughout. Rows of a have lda elements, rows of b ldb: k and n, or more where they
// were widened. With SPLIT_K > 1 a block sums one of SPLIT_K stretches of k.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) gemm(const T* __restrict__ a, const T* __restrict__ b, OUT* __restrict__ c,
                                                          long long m, long long n, long long k, long long lda, long long ldb) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const int tiles = (int)((k + TILE_K - 1) / TILE_K);
  const int first = (int)((long long)tiles * blockIdx.y / SPLIT_K);
  const int last = (int)((long long)tiles * (blockIdx.y + 1) / SPLIT_K);
  const unsigned all = tile_count(m, n);
  unsigned at_hand = blockIdx.x, ahead = blockIdx.x;  // tiles of the result: being multiplied, being fetched
  Tile next = tile_at(ahead, m, n);
  RowWalker<TILE_M, A_ALIGN> rows(a, lda, m, next.row, first * TILE_K, (int)k);
  ColumnWalker<TILE_N, B_ALIGN> columns(b, ldb, next.column, first * TILE_K, (int)k);
  int fetched = 0;
  const auto fetch = [&](int at) {
    if (PERSISTENT && fetched == tiles) {
      fetched = 0;
      ahead += gridDim.x;
      next = tile_at(ahead, m, n);
      rows = RowWalker<TILE_M, A_ALIGN>(a, lda, m, next.row, 0, (int)k);
      columns = ColumnWalker<TILE_N, B_ALIGN>(b, ldb, next.column, 0, (int)k);
    }
    rows.fetch(shared, at);
    columns.fetch(shared, at + A_BYTES, ldb);
    ++fetched;
  };
  Sums sums;
  const auto finish = [&] {
    store_result(shared, sums, c, tile_at(at_hand, m, n), m, n);
    at_hand += gridDim.x;
  };
  const int mine = PERSISTENT ? (int)((all - blockIdx.x + gridDim.x - 1) / gridDim.x) : 1;
  multiply_tiles(shared, (last - first) * mine, last - first, sums, fetch, finish);
  leave();
}
