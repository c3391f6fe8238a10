// c[m, n] = a[m, k] · b[k, n] in float32, row-major throughout (b may be [n, k]). With SPLIT_K > 1 a block sums one of SPLIT_K
// stretches of k into its share.
extern "C" __global__ void __launch_bounds__(THREADS) gemm(const float* __restrict__ a, const float* __restrict__ b,
                                                          float* __restrict__ c, long long m, long long n, long long k,
                                                          long long batches FINISH_PARAMETERS) {
  extern __shared__ float4 shared[];
  const Work work = work_at(blockIdx.x, m, n, k);
  const Tile tile = work.tile;
  const int first = work.depth.first * TILE_K;
  RowWalker<TILE_M, A_ALIGN, TRIANGLE> rows(a + (A_BATCHED ? work.batch * m * k : 0), k, m, tile.row, first, (int)k);
  RightWalker<B_TRANSPOSED, TILE_N, B_ALIGN> columns(b + (B_BATCHED ? work.batch * n * k : 0), B_TRANSPOSED ? k : n, n, tile.column, first, (int)k);
  Sums sums;
  multiply_tiles(shared, work.depth.last - work.depth.first, sums, [&](int at) {
    rows.fetch((unsigned char*)shared, at);
    columns.fetch((unsigned char*)shared, at + A_SIZE * 16);
  });
  if (SPLIT_K == 1) finish_tile(sums, FINISH(work.batch), tile, m, n);
  store_tile(sums, c + (blockIdx.y * batches + work.batch) * m * n, tile, m, n);
}
