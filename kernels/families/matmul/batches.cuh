// Products of many matrices, one after the other (BATCHED), whose tiles are numbered through;
// A_BATCHED and B_BATCHED say which operand has a matrix for each. Of a triangular a (TRIANGLE: 1 =
// what is above its diagonal counts nothing, 2 = what is below it) only the tiles on its side take
// part.

/// Stretch of k in tiles.
struct Depth {
  int first, last;
};
struct Work {
  Tile tile;
  long long batch;
  Depth depth;  ///< one of SPLIT_K that this block has
};

DEVICE Work work_at(unsigned index, long long m, long long n, long long k) {
  const unsigned tiles = tile_count(m, n), batch = BATCHED ? index / tiles : 0;
  index -= batch * tiles;
  const Tile tile = tile_at(TRIANGLE == 1 ? tiles - 1 - index : index, m, n);  // the longest first
  int first = 0, last = (int)((k + TILE_K - 1) / TILE_K);
  if (TRIANGLE == 1) last = (int)min((long long)last, (tile.row + TILE_M + TILE_K - 1) / TILE_K);
  if (TRIANGLE == 2) first = (int)min(tile.row / TILE_K, (long long)last);
  const long long length = last - first;
  return {tile,
          batch,
          {first + (int)(length * blockIdx.y / SPLIT_K),
           first + (int)(length * (blockIdx.y + 1) / SPLIT_K)}};
}

/// Where the batch's result begins. Shares of a split in memory, which are float32, are of all
/// batches.
template <class Result>
DEVICE Result* result_of(Result* c, const Work& work, long long batches, long long m, long long n) {
  // What stores shares goes on by one of them for each stretch of the depth, of one matrix.
  const long long others = sizeof(Result) == 4 ? blockIdx.y * (batches - 1) : 0;
  return c + (others + work.batch) * m * n;
}
