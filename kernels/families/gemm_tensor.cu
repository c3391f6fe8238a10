// c[m, n] = a[m, k] · b[k, n], row-major throughout (b may be [n, k]). Rows of a have lda elements, rows of b ldb: as many as they have,
// or more where they were widened. With SPLIT_K > 1 a block sums one of SPLIT_K stretches of k.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) gemm(const T* __restrict__ a, const T* __restrict__ b, OUT* __restrict__ c,
                                                          long long m, long long n, long long k, long long batches, long long lda,
                                                          long long ldb FINISH_PARAMETERS) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const unsigned all = tile_count(m, n) * (unsigned)batches;
  unsigned at_hand = blockIdx.x, ahead = blockIdx.x;  // tiles of the result: being multiplied, being fetched
  const auto rows_at = [&](const Work& work) {
    return RowWalker<TILE_M, A_ALIGN, TRIANGLE>(a + (A_BATCHED ? work.batch * m * lda : 0), lda, m, work.tile.row, work.depth.first * TILE_K, (int)k);
  };
  const auto columns_at = [&](const Work& work) {
    return RightWalker<B_TRANSPOSED, TILE_N, B_ALIGN>(b + (B_BATCHED ? work.batch * (B_TRANSPOSED ? n : k) * ldb : 0), ldb, n, work.tile.column,
                                                      work.depth.first * TILE_K, (int)k);
  };
  const Work first = work_at(ahead, m, n, k);
  const int tiles = first.depth.last - first.depth.first;  // of the depth, for every tile of the result
  auto rows = rows_at(first);
  auto columns = columns_at(first);
  int fetched = 0;
  const auto fetch = [&](int at) {
    if (PERSISTENT && fetched == tiles) {
      fetched = 0;
      ahead += gridDim.x;
      const Work next = work_at(ahead, m, n, k);
      rows = rows_at(next);
      columns = columns_at(next);
    }
    rows.fetch(shared, at);
    columns.fetch(shared, at + A_BYTES);
    ++fetched;
  };
  Sums sums;
  const auto finish = [&] {
    const Work done = work_at(at_hand, m, n, k);
    store_result(shared, sums, result_of(c, done, batches, m, n), done.tile, m, n, FINISH(done.batch));
    at_hand += gridDim.x;
  };
  const int mine = PERSISTENT ? (int)((all - blockIdx.x + gridDim.x - 1) / gridDim.x) : 1;
  multiply_tiles(shared, tiles * mine, tiles, sums, fetch, finish);
  leave();
}
