// The main loop that matrix products and convolutions share: a block computes TILE_M × TILE_N of
// c[m, n] = a[m, k] · b[k, n], each warp WARP_M × WARP_N of it, in float32 accumulators. Tiles of
// TILE_K travel through STAGES buffers of shared memory by asynchronous copies; fragments are read
// one step ahead of the products that use them.
constexpr int WARPS_N = TILE_N / WARP_N;
constexpr int THREADS = TILE_M / WARP_M * WARPS_N * 32;
// per row of a's tile, which is [TILE_M][TILE_K]
constexpr int A_UNITS = TILE_K / 8;
// b's tile is [TILE_N][TILE_K] or [TILE_K][TILE_N]
constexpr int B_UNITS = B_TRANSPOSED ? TILE_K / 8 : TILE_N / 8;
constexpr int A_BYTES = TILE_M * TILE_K * 2;
constexpr int STAGE_BYTES = A_BYTES + TILE_K * TILE_N * 2;
constexpr int FRAGMENTS_M = WARP_M / 16;
constexpr int FRAGMENTS_N = WARP_N / 8;
constexpr int STEPS = TILE_K / 16;

typedef float Sums[FRAGMENTS_M][FRAGMENTS_N][4];

constexpr int B_PANEL = TILE_N;
constexpr bool STAGED_APART = false;
constexpr int CONSUMERS = THREADS;

DEVICE void wait_for_consumers() { __syncthreads(); }

DEVICE int fragment_row(int i) { return threadIdx.x / 32 / WARPS_N * WARP_M + i * 16; }
DEVICE int warp_column() { return threadIdx.x / 32 % WARPS_N * WARP_N; }

/// Multiplies `tiles` tiles, one of the result; then finish() takes the sums. fetch(at) starts the
/// copies of the next tile into the buffer at byte `at`.
template <class Fetch, class Finish>
DEVICE void multiply_tiles(unsigned char* shared, int tiles, int, Sums& sums, const Fetch& fetch,
                           const Finish& finish) {
  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_m = warp / WARPS_N * WARP_M, warp_n = warp % WARPS_N * WARP_N;
  clear(sums);
  if (tiles <= 0) return finish();
  unsigned fa[2][FRAGMENTS_M][4], fb[2][FRAGMENTS_N / 2][4];
  constexpr int LOADS = FRAGMENTS_M + FRAGMENTS_N / 2;
  const auto load_fragment = [&](int which, int stage, int step, int into) {
    const unsigned at_a = shared_at + stage * STAGE_BYTES, at_b = at_a + A_BYTES;
    if (which < FRAGMENTS_M) {
      load_matrices(fa[into][which], at_a + swizzled<A_UNITS>(warp_m + which * 16 + lane % 16,
                                                              step * 2 + lane / 16));
    } else if (B_TRANSPOSED) {
      const int j = which - FRAGMENTS_M;
      load_matrices(fb[into][j],
                    at_b + swizzled<B_UNITS>(warp_n + j * 16 + lane / 16 * 8 + lane % 8,
                                             step * 2 + lane / 8 % 2));
    } else {
      const int j = which - FRAGMENTS_M;
      load_transposed(fb[into][j], at_b + swizzled<B_UNITS>(step * 16 + lane % 16,
                                                            warp_n / 8 + j * 2 + lane / 16));
    }
  };

  UNROLLED for (int s = 0; s < STAGES - 1; ++s) {
    if (s < tiles) fetch(s * STAGE_BYTES);
    commit_copies();
  }
  wait_copies<STAGES - 2>();
  __syncthreads();
  UNROLLED for (int which = 0; which < LOADS; ++which) load_fragment(which, 0, 0, 0);
  int stage = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const int next_stage = stage + 1 == STAGES ? 0 : stage + 1;
    UNROLLED for (int step = 0; step < STEPS; ++step) {
      const bool last = step == STEPS - 1;
      if (last) {  // the next tile must have landed before its first fragments are read
        wait_copies<STAGES - 2>();
        __syncthreads();
      }
      if (step == 0) {  // into the buffer that all threads left at the last barrier
        if (tile + STAGES - 1 < tiles) fetch((stage == 0 ? STAGES - 1 : stage - 1) * STAGE_BYTES);
        commit_copies();
      }
      const bool more = !last || tile + 1 < tiles;
      // Reads of the next fragments are spread among the products, so that neither waits for the
      // other's queue. Columns go back and forth: every product shares a fragment with the one
      // before.
      UNROLLED for (int p = 0; p < FRAGMENTS_M * FRAGMENTS_N; ++p) {
        constexpr int APART = FRAGMENTS_M * FRAGMENTS_N / LOADS > 0
                                  ? FRAGMENTS_M * FRAGMENTS_N / LOADS
                                  : 1;
        if (more && p % APART == 0 && p / APART < LOADS) {
          load_fragment(p / APART, last ? next_stage : stage, last ? 0 : step + 1, (step + 1) % 2);
        }
        const int i = p / FRAGMENTS_N,
                  j = i % 2 ? FRAGMENTS_N - 1 - p % FRAGMENTS_N : p % FRAGMENTS_N;
        multiply(sums[i][j], fa[step % 2][i], fb[step % 2][j / 2][j % 2 * 2],
                 fb[step % 2][j / 2][j % 2 * 2 + 1]);
      }
      UNROLLED for (int which = FRAGMENTS_M * FRAGMENTS_N; which < LOADS; ++which) {
        if (more)
          load_fragment(which, last ? next_stage : stage, last ? 0 : step + 1, (step + 1) % 2);
      }
    }
    stage = next_stage;
  }
  finish();
}
