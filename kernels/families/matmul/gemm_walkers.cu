// c[m, n] = a[m, k] · b[k, n], row-major throughout (b may be [n, k]). Rows of a have lda elements,
// rows of b ldb: their own number, or more where they were widened. With SPLIT_K > 1 a block sums
// over one of SPLIT_K parts of k.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    gemm(const Operand* __restrict__ a, const Operand* __restrict__ b, OUT* __restrict__ c,
         long long m, long long n, long long k, long long batches, long long lda,
         long long ldb EPILOGUE_PARAMETERS) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const Work work = work_at(blockIdx.x, m, n, k);
  const int first = work.depth.first * TILE_K;
  Walker<false, TILE_M, A_ALIGN, TRIANGLE> rows(a + (A_BATCHED ? work.batch * m * lda : 0), lda,
                                                work.tile.row, m, first, (int)k);
  Walker<!B_TRANSPOSED, TILE_N, B_ALIGN> columns(
      b + (B_BATCHED ? work.batch * (B_TRANSPOSED ? n : k) * ldb : 0), ldb, work.tile.column, n,
      first, (int)k);
  Sums sums;
  const auto fetch = [&](int at) {
    rows.fetch(shared, at);
    columns.fetch(shared, at + A_BYTES);
  };
  const auto finish = [&] {
    store_result(shared, sums, result_of(c, work, batches, m, n), work.tile, m, n,
                 EPILOGUE(work.batch));
  };
  const int tiles = work.depth.last - work.depth.first;
  multiply_tiles(shared, tiles, tiles, sums, fetch, finish);
  leave();
}
