#define DEVICE __device__ __forceinline__

struct Tile {
  long long row, column;  // of the result, the tile's first
};
/// Blocks go down GROUP_M rows of tiles before they step to the next column: what a wave of them reads stays in L2.
template <int ROWS = TILE_M, int COLUMNS = TILE_N>
DEVICE Tile tile_at(unsigned index, long long m, long long n) {
  const unsigned tiles_m = (unsigned)((m + ROWS - 1) / ROWS), tiles_n = (unsigned)((n + COLUMNS - 1) / COLUMNS);
  const unsigned group = index / (GROUP_M * tiles_n), in_group = index % (GROUP_M * tiles_n);
  const unsigned rows = min(tiles_m - group * GROUP_M, (unsigned)GROUP_M);
  return {(long long)(group * GROUP_M + in_group % rows) * ROWS, (long long)(in_group / rows) * COLUMNS};
}
DEVICE Tile tile_of_block(long long m, long long n) { return tile_at(blockIdx.x, m, n); }
template <int ROWS = TILE_M, int COLUMNS = TILE_N>
DEVICE unsigned tile_count(long long m, long long n) {
  return (unsigned)((m + ROWS - 1) / ROWS) * (unsigned)((n + COLUMNS - 1) / COLUMNS);
}
