// From accumulators to the result. A warp holds fragments of 16 × 8: sums[i][j] starts at row fragment_row(i), column
// warp_column() + 8 j of the tile; lane l has rows l / 4 and l / 4 + 8 of it, columns 2 (l % 4) and the next.

/// Rounds the sums and writes the tile, 16 × STORE_N of a warp at a time through shared memory, so that whole units are
/// written: behind the buffers where they are in use (STAGED_APART).
template <class Ahead>
DEVICE void store_result(unsigned char* shared, const Sums& sums, T* c, Tile tile, long long m, long long n, const Finish& finish,
                         const Ahead& ahead) {
  constexpr int STORE_N = FRAGMENTS_N % 8 == 0 ? 64 : FRAGMENTS_N * 8;
  constexpr int UNITS = STORE_N / 8, WIDTH = SCATTERED ? 1 : 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned char* staging = shared + (STAGED_APART ? STAGES * STAGE_BYTES : 0) + warp * 16 * UNITS * 16;
  if (!STAGED_APART) {
    wait_copies<0>();
    __syncthreads();  // nobody reads the tiles any more
  }
  UNROLLED for (int i = 0; i < FRAGMENTS_M; ++i) {
    const long long top = tile.row + fragment_row(i) + lane / 4;
    UNROLLED for (int first = 0; first < FRAGMENTS_N; first += UNITS) {
      Finish::Element elements[UNITS][2][2];
      UNROLLED for (int at = 0; at < UNITS * 4; ++at) {
        const long long column = tile.column + warp_column() + (first + at / 4) * 8 + lane % 4 * 2 + at % 2;
        elements[at / 4][at / 2 % 2][at % 2] = finish.element(min(top + at / 2 % 2 * 8, m - 1), min(column, n - 1));
      }
      UNROLLED for (int j = 0; j < UNITS; ++j) {
        const int inside = warp_column() + (first + j) * 8 + lane % 4 * 2;
        const Finish::Column left = ahead.column(inside), right = ahead.column(inside + 1);
        const long long column = min(tile.column + inside, n - 1), next = min(column + 1, n - 1);
        UNROLLED for (int half = 0; half < 2; ++half) {
          *(unsigned*)(staging + swizzled<UNITS>(lane / 4 + half * 8, j) + lane % 4 * 4) =
              pack(finish(sums[i][first + j][half * 2], ahead.row(i, half), left, elements[j][half][0], min(top + half * 8, m - 1), column),
                   finish(sums[i][first + j][half * 2 + 1], ahead.row(i, half), right, elements[j][half][1], min(top + half * 8, m - 1), next));
        }
      }
      __syncwarp();
#pragma unroll 4
      for (int at = lane * WIDTH; at < 16 * STORE_N; at += 32 * WIDTH) {
        const long long row = tile.row + fragment_row(i) + at / STORE_N, column = tile.column + warp_column() + first * 8 + at % STORE_N;
        const unsigned char* from = staging + swizzled<UNITS>(at / STORE_N, at % STORE_N / 8) + at % 8 * sizeof(T);
        if (row < m && column < n) put(c, row, column, m, n, *(const Units<T, WIDTH>*)from);
      }
      __syncwarp();
    }
  }
}

/// The same where nobody has asked for what finishes rows and columns before.
struct AskedNow {
  const Finish& finish;
  Tile tile;
  long long m, n;
  DEVICE Finish::Row row(int i, int half) const {
    return finish.row(min(tile.row + fragment_row(i) + threadIdx.x % 32 / 4 + half * 8, m - 1));
  }
  DEVICE Finish::Column column(int at) const { return finish.column(min(tile.column + at, n - 1)); }
};
DEVICE void store_result(unsigned char* shared, const Sums& sums, T* c, Tile tile, long long m, long long n, const Finish& finish = {}) {
  store_result(shared, sums, c, tile, m, n, finish, AskedNow{finish, tile, m, n});
}

/// What warps that fetch do meanwhile, and what everybody does before the end: nothing.
DEVICE void store_nothing() {}
DEVICE void leave() {}
