// The tile that a block of warpgroups multiplies on Hopper: TILE_M × TILE_N of c[m, n] = a[m, k] ·
// b[k, n], GROUP_ROWS × TILE_N of it per warpgroup, from buffers in shared memory whose rows of 128
// bytes are swizzled.
constexpr int TILE_K = 128 / OPERAND_BYTES;
constexpr int A_BYTES = TILE_M * 128;
constexpr int STAGE_BYTES = A_BYTES + TILE_N * 128;
constexpr int B_PANEL = 64;
constexpr int FRAGMENTS_M = GROUP_ROWS / 64;
constexpr int FRAGMENTS_N = TILE_N / 8;
/// Groups that share a tile of the result.
constexpr int SHARING = TILE_M / GROUP_ROWS;

typedef Sum Sums[FRAGMENTS_M][FRAGMENTS_N][4];

DEVICE int group_row() { return threadIdx.x / 128 % SHARING * GROUP_ROWS; }
DEVICE int fragment_row(int i) { return group_row() + i * 64 + threadIdx.x / 32 % 4 * 16; }
DEVICE int warp_column() { return 0; }

/// Starts this group's products of the buffer at `at`; with ANEW they replace what `sums` held.
template <bool ANEW = false>
DEVICE void multiply_buffer(Sums& sums, unsigned at) {
  // Bytes from one instruction's depth to the next one's.
  constexpr int A_STEP = 32, B_STEP = B_TRANSPOSED ? 32 : 16 * B_PANEL * 2;
  const unsigned at_a = at + group_row() * 128;
  start_products();
  UNROLLED for (int step = 0; step < 4; ++step) {
    const unsigned long long b = operand(at + A_BYTES + step * B_STEP, TILE_K * B_PANEL * 2);
    UNROLLED for (int i = 0; i < FRAGMENTS_M; ++i) {
      const unsigned long long a = operand(at_a + i * 8192 + step * A_STEP);
      if (ANEW && step == 0)
        multiply<false>(sums[i], a, b);
      else
        multiply(sums[i], a, b);
    }
  }
  commit_products();
}
