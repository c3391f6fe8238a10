// Batched products (BATCHED): tiles of all matrices are numbered consecutively; A_BATCHED and
// B_BATCHED say which operands have one matrix per batch. For a triangular a (TRIANGLE: 1 =
// elements above the diagonal are zero, 2 = elements below it are zero) only the tiles of its
// non-zero side are multiplied.

/// A range of k, in tiles.
struct Depth {
  int first, last;
};
struct Work {
  Tile tile;
  long long batch;
  Depth depth;  ///< the range of this block, one of SPLIT_K
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

/// The address of the batch's result. Partial sums of split-K, which are float32, have an array
/// over all batches per part of k.
template <class Result>
DEVICE Result* result_of(Result* c, const Work& work, long long batches, long long m, long long n) {
  // The store advances by one matrix per part of k; the other batches in between are added here.
  const long long others = sizeof(Result) == 4 ? blockIdx.y * (batches - 1) : 0;
  return c + (others + work.batch) * m * n;
}
