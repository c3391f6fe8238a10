// Split-K inside a cluster: each block leaves its partial sums in its shared memory, and each block
// adds up a part of the tile over all blocks, in the order of k, so that every run gives the same
// bits. tile_store.cuh describes the layout of fragments.
template <class... Ahead>
DEVICE void store_result(unsigned char* shared, const Sums& sums, T* c, Tile tile, long long m,
                         long long n, const Epilogue& epilogue = {}, const Ahead&...) {
  constexpr int PITCH = TILE_N + 8;  // in floats; rows of a fragment start in different banks
  constexpr int UNITS = RESULT_N / 8, SUMS = Epilogue::SUMS;
  const int lane = threadIdx.x % 32, rows = (int)min(m - tile.row, (long long)TILE_M);
  wait_for_consumers();  // all products are finished
  UNROLLED for (int i = 0; i < FRAGMENTS_M; ++i) {
    UNROLLED for (int half = 0; half < 2; ++half) {
      const int row = fragment_row(i) + lane / 4 + half * 8;
      float* to = (float*)shared + row * PITCH + warp_column() + lane % 4 * 2;
      if (row >= rows) continue;
      UNROLLED for (int j = 0; j < FRAGMENTS_N; ++j) *
          (float2*)(to + j * 8) = make_float2(sums[i][j][half * 2], sums[i][j][half * 2 + 1]);
    }
  }
  wait_for_cluster();
  const unsigned local = (unsigned)__cvta_generic_to_shared(shared);
  for (int at = blockIdx.y * CONSUMERS + threadIdx.x; at < rows * UNITS;
       at += SPLIT_K * CONSUMERS) {
    const int row = at / UNITS, first = at % UNITS * 8;
    const long long column = tile.column + first;
    if (column >= n) continue;
    Epilogue::Element elements[8];
    epilogue.elements(elements, tile.row + row, column);
    float sums_of[SUMS][8] = {};
    UNROLLED for (int s = 0; s < SPLIT_K * SUMS; ++s) {
      float(&sum)[8] = sums_of[s % SUMS];
      const unsigned from = at_rank(local + (row * PITCH + s % SUMS * RESULT_N + first) * 4,
                                    s / SUMS);
      const float4 low = load_remote(from), high = load_remote(from + 16);
      sum[0] += low.x, sum[1] += low.y, sum[2] += low.z, sum[3] += low.w;
      sum[4] += high.x, sum[5] += high.y, sum[6] += high.z, sum[7] += high.w;
    }
    float(&sum)[8] = sums_of[0];
    const Epilogue::Row epilogue_row = epilogue.row(tile.row + row);
    UNROLLED for (int e = 0; e < 8; ++e) sum[e] = epilogue(
        sum[e], sums_of[SUMS - 1][e], epilogue_row, epilogue.column(min(column + e, n - 1)),
        elements[e], tile.row + row, min(column + e, n - 1));
    const uint4 unit = make_uint4(pack(sum[0], sum[1]), pack(sum[2], sum[3]), pack(sum[4], sum[5]),
                                  pack(sum[6], sum[7]));
    put(c, tile.row + row, column, m, n, *(const Units<T, 8>*)&unit);
  }
}

/// The fetching warps take part in the cluster barrier behind the stores to shared memory.
DEVICE void store_nothing() { wait_for_cluster(); }
/// Keeps the block alive until the others have read its sums.
DEVICE void leave() { meet_cluster(); }
