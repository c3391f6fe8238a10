// The main loop that float32 matrix products and convolutions share: a block computes TILE_M ×
// TILE_N of c[m, n] = a[m, k] · b[k, n] with fused multiply-adds, a thread THREAD_M × THREAD_N of
// it. Tiles of TILE_K travel through STAGES buffers of shared memory by asynchronous copies. A
// `unit` is four floats. Tiles whose rows run along k have rows an odd number of units apart, so
// that lanes that read one unit of different rows use different banks.
constexpr int THREADS_M = TILE_M / THREAD_M;
constexpr int THREADS_N = TILE_N / THREAD_N;
constexpr int THREADS = THREADS_M * THREADS_N;
constexpr int K_UNITS = TILE_K / 4;
constexpr int K_PITCH = K_UNITS | 1;
constexpr int N_UNITS = TILE_N / 4;
constexpr int A_SIZE = TILE_M * K_PITCH;  // in units
constexpr int STAGE_SIZE = A_SIZE + (B_TRANSPOSED ? TILE_N * K_PITCH : TILE_K * N_UNITS);
constexpr int A_BYTES = A_SIZE * 16;

typedef float Sums[THREAD_M][THREAD_N];

constexpr int B_PANEL = TILE_N;
/// The offset of a unit in a tile whose rows run along k or, with ACROSS, across it.
template <bool ACROSS, int UNITS>
DEVICE int unit_offset(int row, int unit) {
  return (row * (ACROSS ? UNITS : K_PITCH) + unit) * 16;
}

/// Columns of the tile that thread column x owns: single ones where b's tile runs along k, else
/// units.
DEVICE int column_of(int x, int j) {
  return B_TRANSPOSED ? x + j * THREADS_N : j / 4 * (THREADS_N * 4) + x * 4 + j % 4;
}

/// Multiplies `tiles` tiles, one of the result; then finish() takes the sums. fetch(at) starts the
/// copies of the next tile into the buffer at byte `at`.
template <class Fetch, class Finish>
DEVICE void multiply_tiles(unsigned char* shared, int tiles, int, Sums& sums, const Fetch& fetch,
                           const Finish& finish) {
  const int x = threadIdx.x % THREADS_N, y = threadIdx.x / THREADS_N;
  UNROLLED for (int i = 0; i < THREAD_M; ++i) {
    UNROLLED for (int j = 0; j < THREAD_N; ++j) sums[i][j] = 0;
  }
  UNROLLED for (int s = 0; s < STAGES - 1; ++s) {
    if (s < tiles) fetch(s * STAGE_SIZE * 16);
    commit_copies();
  }
  int stage = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    wait_copies<STAGES - 2>();
    __syncthreads();  // this tile has arrived, and all reads of the previous one are finished
    if (tile + STAGES - 1 < tiles) fetch((stage == 0 ? STAGES - 1 : stage - 1) * STAGE_SIZE * 16);
    commit_copies();
    const float4* const a = (const float4*)shared + stage * STAGE_SIZE;
    const float4* const b = a + A_SIZE;
    UNROLLED for (int unit = 0; unit < K_UNITS; ++unit) {
      float4 fa[THREAD_M];
      UNROLLED for (int i = 0; i < THREAD_M; ++i) fa[i] = a[(y + i * THREADS_M) * K_PITCH + unit];
      if (B_TRANSPOSED) {
        UNROLLED for (int j = 0; j < THREAD_N; ++j) {
          const float4 fb = b[(x + j * THREADS_N) * K_PITCH + unit];
          UNROLLED for (int i = 0; i < THREAD_M; ++i) {
            sums[i][j] = fmaf(fa[i].x, fb.x, sums[i][j]);
            sums[i][j] = fmaf(fa[i].y, fb.y, sums[i][j]);
            sums[i][j] = fmaf(fa[i].z, fb.z, sums[i][j]);
            sums[i][j] = fmaf(fa[i].w, fb.w, sums[i][j]);
          }
        }
      } else {
        UNROLLED for (int e = 0; e < 4; ++e) {
          float fb[THREAD_N];
          UNROLLED for (int j = 0; j < THREAD_N; j += 4) *
              (float4*)&fb[j] = b[(unit * 4 + e) * N_UNITS + j / 4 * THREADS_N + x];
          UNROLLED for (int i = 0; i < THREAD_M; ++i) {
            const float left = e == 0 ? fa[i].x : e == 1 ? fa[i].y : e == 2 ? fa[i].z : fa[i].w;
            UNROLLED for (int j = 0; j < THREAD_N; ++j) sums[i][j] = fmaf(left, fb[j], sums[i][j]);
          }
        }
      }
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
  finish();
}
