// The main loop of matrix products and convolutions on Hopper: a block computes TILE_M × TILE_N of c[m, n] = a[m, k] · b[k, n],
// each group of four warps GROUP_ROWS × TILE_N of it. wgmma reads both operands from shared memory, in the layout of 128-byte
// swizzled rows, and runs in the background: while tile t is multiplied, tile t + STAGES - 2 is copied.
constexpr int TILE_K = 64;  // 128 bytes
constexpr int THREADS = TILE_M / GROUP_ROWS * 128;
constexpr int A_BYTES = TILE_M * TILE_K * 2;
constexpr int STAGE_BYTES = A_BYTES + TILE_K * TILE_N * 2;
constexpr int B_PANEL = 64;
constexpr int FRAGMENTS_M = GROUP_ROWS / 64;
constexpr int FRAGMENTS_N = TILE_N / 8;

typedef float Sums[FRAGMENTS_M][FRAGMENTS_N][4];

DEVICE int fragment_row(int i) { return threadIdx.x / 128 * GROUP_ROWS + i * 64 + threadIdx.x / 32 % 4 * 16; }
DEVICE int warp_column() { return 0; }

/// Bytes from one depth of 16 to the next.
constexpr int A_STEP = 32, B_STEP = B_TRANSPOSED ? 32 : 16 * B_PANEL * 2;

/// Multiplies `tiles` tiles, which make a tile of the result every `depth` of them: then finish() takes the sums, while the
/// copies for the next one are under way. fetch(at) starts the copies of the next tile into the buffer at byte `at`.
template <class Fetch, class Finish>
DEVICE void multiply_tiles(unsigned char* shared, int tiles, int depth, Sums& sums, const Fetch& fetch, const Finish& finish) {
  const unsigned at_a = (unsigned)__cvta_generic_to_shared(shared) + threadIdx.x / 128 * GROUP_ROWS * 128;
  const unsigned at_b = (unsigned)__cvta_generic_to_shared(shared) + A_BYTES;
  clear(sums);
  if (tiles <= 0) return finish();
#pragma unroll
  for (int s = 0; s < STAGES - 2; ++s) {
    if (s < tiles) fetch(s * STAGE_BYTES);
    commit_copies();
  }
  int stage = 0, free = STAGES - 2;
  for (int done = 0; done < tiles; done += depth) {
    for (int tile = done; tile < done + depth; ++tile) {
      wait_copies<STAGES - 3>();
      show_to_tensor_cores();
      // From here on everybody sees this tile, and nobody's product reads the one before the last any more.
      __syncthreads();
      start_products();
#pragma unroll
      for (int step = 0; step < TILE_K / 16; ++step) {
        const unsigned long long b = operand(at_b + stage * STAGE_BYTES + step * B_STEP, TILE_K * B_PANEL * 2);
#pragma unroll
        for (int i = 0; i < FRAGMENTS_M; ++i) multiply(sums[i], operand(at_a + stage * STAGE_BYTES + i * 8192 + step * A_STEP), b);
      }
      commit_products();
      if (tile + STAGES - 2 < tiles) fetch(free * STAGE_BYTES);
      commit_copies();
      wait_products<1>();
      stage = stage + 1 == STAGES ? 0 : stage + 1;
      free = free + 1 == STAGES ? 0 : free + 1;
    }
    wait_products<0>();
    settle(sums);
    finish();
    if (PERSISTENT) clear(sums);
  }
}
