/// Columns of the result that a tile makes: each takes as many of the product's.
constexpr int RESULT_N = TILE_N / Epilogue::SUMS;

struct Tile {
  long long row, column;  // of the result, the tile's first
};
/// Blocks go down GROUP_M rows of tiles before they step to the next column: what a wave of them
/// reads stays in L2.
DEVICE Tile tile_at(unsigned index, long long m, long long n) {
  const unsigned tiles_m = (unsigned)((m + TILE_M - 1) / TILE_M),
                 tiles_n = (unsigned)((n + RESULT_N - 1) / RESULT_N);
  const unsigned group = index / (GROUP_M * tiles_n), in_group = index % (GROUP_M * tiles_n);
  const unsigned rows = min(tiles_m - group * GROUP_M, (unsigned)GROUP_M);
  return {(long long)(group * GROUP_M + in_group % rows) * TILE_M,
          (long long)(in_group / rows) * RESULT_N};
}
DEVICE unsigned tile_count(long long m, long long n) {
  return (unsigned)((m + TILE_M - 1) / TILE_M) * (unsigned)((n + RESULT_N - 1) / RESULT_N);
}
