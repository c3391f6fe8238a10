// How accumulators lie in a tile. A warp holds fragments of 16 × 8: sums[i][j] starts at row fragment_row(i), column
// warp_column() + 8 j of the tile; lane l has rows l / 4 and l / 4 + 8 of it, columns 2 (l % 4) and the next.

/// use(row, column, sums side by side) for all that a thread has of the first `rows` rows.
typedef Units<Sum, 2> Piece;
template <class Use>
DEVICE void visit(const Sums& sums, long long rows, const Use& use) {
  const int lane = threadIdx.x % 32;
  UNROLLED for (int i = 0; i < FRAGMENTS_M * 2; ++i) {
    const int row = fragment_row(i / 2) + lane / 4 + i % 2 * 8;
    if (row >= rows) continue;
    UNROLLED for (int j = 0; j < FRAGMENTS_N; ++j)
      use(row, warp_column() + j * 8 + lane % 4 * 2, Piece{sums[i / 2][j][i % 2 * 2], sums[i / 2][j][i % 2 * 2 + 1]});
  }
}
