// Results in float32. In a split of k through memory each block writes its sums as they are, one share of [m, n] per stretch of k;
// a second step adds them up (split.cuh).
template <class... Ahead>
DEVICE void store_result(unsigned char*, const Sums& sums, float* shares, Tile tile, long long m, long long n, const Finish& finish = {},
                         const Ahead&...) {
  float* share = shares + blockIdx.y * share_elements(m, n);
  visit(sums, m - tile.row, [&](int down, int across, Piece piece) {
    const long long row = tile.row + down, column = tile.column + across;
    if (column >= n) return;
    const Finish::Row finish_row = finish.row(row);
    Units<float, sizeof(Piece) / 4> finished;
    UNROLLED for (int e = 0; e < sizeof(Piece) / 4; ++e) {
      const auto sum = piece.element[e];
      finished.element[e] = SPLIT_K > 1 ? sum : finish(sum, finish_row, finish.column(min(column + e, n - 1)), row, min(column + e, n - 1));
    }
    put(share, row, column, m, n, finished);
  });
}

/// What warps that fetch do meanwhile, and what everybody does before the end: nothing.
DEVICE void store_nothing() {}
DEVICE void leave() {}
