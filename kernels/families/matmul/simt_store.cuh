// Stores sums of fused multiply-adds (simt_tile.cuh); with SPLIT_K > 1 as partial sums, one array
// per part of k (split_k.cuh).
DEVICE void store_result(unsigned char*, Sums& sums, float* c, Tile tile, long long m, long long n,
                         const Epilogue& epilogue = {}) {
  const int x = threadIdx.x % THREADS_N, y = threadIdx.x / THREADS_N;
  UNROLLED for (int j = 0; SPLIT_K == 1 && j < THREAD_N; ++j) {
    const long long column = min(tile.column + column_of(x, j), n - 1);
    const Epilogue::Column epilogue_column = epilogue.column(column);
    Epilogue::Element elements[THREAD_M][1];
    UNROLLED for (int i = 0; i < THREAD_M; ++i)
        epilogue.elements(elements[i], min(tile.row + y + i * THREADS_M, m - 1), column);
    UNROLLED for (int i = 0; i < THREAD_M; ++i) {
      const long long row = min(tile.row + y + i * THREADS_M, m - 1);
      sums[i][j] = epilogue(sums[i][j], 0.0f, epilogue.row(row), epilogue_column, elements[i][0],
                            row, column);
    }
  }
  if (SPLIT_K > 1) c += blockIdx.y * share_elements(m, n);
  UNROLLED for (int i = 0; i < THREAD_M; ++i) {
    const long long row = tile.row + y + i * THREADS_M;
    UNROLLED for (int j = 0; j < THREAD_N; ++j) {
      const long long column = tile.column + column_of(x, j);
      if (row >= m || column >= n) continue;
      if (B_TRANSPOSED || !C_ALIGNED)
        put(c, row, column, m, n, Units<float, 1>{sums[i][j]});
      else if (j % 4 == 0)
        *(float4*)(c + row * n + column) = make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2],
                                                       sums[i][j + 3]);
    }
  }
}
DEVICE void leave() {}
