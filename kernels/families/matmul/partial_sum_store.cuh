// Stores results in float32. With split-K through memory each block stores its partial sums, one
// array [m, n] per part of k; a second step adds them up (split_k.cuh). tile_store.cuh describes
// the layout of fragments.
template <class... Ahead>
DEVICE void store_result(unsigned char*, const Sums& sums, float* partial_sums, Tile tile,
                         long long m, long long n, const Epilogue& epilogue = {}, const Ahead&...) {
  float* share = partial_sums + blockIdx.y * share_elements(m, n);
  const int lane = threadIdx.x % 32;
  UNROLLED for (int i = 0; i < FRAGMENTS_M; ++i) {
    UNROLLED for (int half = 0; half < 2; ++half) {
      const long long row = tile.row + fragment_row(i) + lane / 4 + half * 8;
      if (row >= m) continue;
      const Epilogue::Row epilogue_row = epilogue.row(row);
      Epilogue::Element elements[FRAGMENTS_N][2];
      UNROLLED for (int j = 0; SPLIT_K == 1 && j < FRAGMENTS_N; ++j)
          epilogue.elements(elements[j], row, tile.column + warp_column() + j * 8 + lane % 4 * 2);
      UNROLLED for (int j = 0; j < FRAGMENTS_N; ++j) {
        const long long column = tile.column + warp_column() + j * 8 + lane % 4 * 2;
        if (column >= n) continue;
        Units<float, 2> pair;
        UNROLLED for (int e = 0; e < 2; ++e) {
          const auto sum = sums[i][j][half * 2 + e];
          pair.element[e] = SPLIT_K > 1 ? sum
                                        : epilogue(sum, 0.0f, epilogue_row,
                                                   epilogue.column(min(column + e, n - 1)),
                                                   elements[j][e], row, min(column + e, n - 1));
        }
        put(share, row, column, m, n, pair);
      }
    }
  }
}

/// The fetching warps have nothing to store, and blocks need no barrier before they end.
DEVICE void store_nothing() {}
DEVICE void leave() {}
