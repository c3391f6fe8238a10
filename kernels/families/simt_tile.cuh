// The main loop that float32 matrix products and convolutions share: a block computes TILE_M × TILE_N of
// c[m, n] = a[m, k] · b[k, n] with fused multiply-adds, a thread THREAD_M × THREAD_N of it. Tiles of TILE_K travel through
// STAGES buffers of shared memory by asynchronous copies. A `unit` is four floats. Tiles whose rows run along k have rows an
// odd number of units apart, so that lanes that read one unit of different rows use different banks.
constexpr int THREADS_M = TILE_M / THREAD_M;
constexpr int THREADS_N = TILE_N / THREAD_N;
constexpr int THREADS = THREADS_M * THREADS_N;
constexpr int K_UNITS = TILE_K / 4;
constexpr int K_PITCH = K_UNITS | 1;
constexpr int N_UNITS = TILE_N / 4;
constexpr int A_SIZE = TILE_M * K_PITCH;                                        // in units
constexpr int STAGE_SIZE = A_SIZE + (B_TRANSPOSED ? TILE_N * K_PITCH : TILE_K * N_UNITS);

typedef float Sums[THREAD_M][THREAD_N];

/// BYTES global → shared in the background, where the hardware can; zeros when not `valid`.
template <int BYTES>
DEVICE void copy_async(float* to, const float* from, bool valid) {
#if __CUDA_ARCH__ >= 800
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(valid ? 16 : 0) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(valid ? 4 : 0) : "memory");
#else
  if (BYTES == 16) *(float4*)to = valid ? *(const float4*)from : make_float4(0, 0, 0, 0);
  else *to = valid ? *from : 0;
#endif
}
DEVICE void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int PENDING>
DEVICE void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}
/// One unit, of which `count` floats exist.
template <bool ALIGNED>
DEVICE void copy_unit(float4* to, const float* from, int count) {
  if (ALIGNED) {
    copy_async<16>((float*)to, from, count > 0);
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e) copy_async<4>((float*)to + e, from + e, count > e);
  }
}

/// ROWS × TILE_K of a row-major matrix, walking along its rows. A thread keeps its unit column.
template <int ROWS, bool ALIGNED>
struct RowWalker {
  static constexpr int STRIDE = THREADS / K_UNITS;
  static constexpr int COUNT = (ROWS + STRIDE - 1) / STRIDE;
  const float* from;
  long long stride;  // elements between this thread's rows
  int rows;          // that exist, counted from this thread's first
  int left;          // elements of the row from this thread's unit on

  DEVICE RowWalker(const float* matrix, long long width, long long height, long long first_row, int first, int last) {
    const int row = threadIdx.x / K_UNITS, unit = threadIdx.x % K_UNITS;
    const bool inside = first_row + row < height;
    from = matrix + (inside ? first_row + row : 0) * width + first + unit * 4;
    stride = STRIDE * width;
    rows = inside ? (int)min(height - first_row - row, (long long)ROWS) : 0;
    left = last - first - unit * 4;
  }
  DEVICE void fetch(float4* to) {
    const int row = threadIdx.x / K_UNITS, unit = threadIdx.x % K_UNITS;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (STRIDE > ROWS && row >= ROWS) break;
      copy_unit<ALIGNED>(to + (row + i * STRIDE) * K_PITCH + unit, from + i * stride, i * STRIDE < rows ? left : 0);
    }
    from += TILE_K;
    left -= TILE_K;
  }
};

/// TILE_K × TILE_N of a row-major matrix, walking down its columns.
template <bool ALIGNED>
struct ColumnWalker {
  static constexpr int STRIDE = (THREADS + N_UNITS - 1) / N_UNITS;
  static constexpr int COUNT = (TILE_K + STRIDE - 1) / STRIDE;
  const float* from;
  long long stride;
  int count;  // elements of this thread's unit that exist
  int left;   // rows from this thread's first on

  DEVICE ColumnWalker(const float* matrix, long long width, long long first_column, int first, int last) {
    const int row = threadIdx.x / N_UNITS;
    const long long column = first_column + threadIdx.x % N_UNITS * 4;
    from = matrix + (long long)(first + row) * width + column;
    stride = STRIDE * width;
    count = (int)max(min(width - column, 4ll), 0ll);
    left = last - first - row;
  }
  DEVICE void fetch(float4* to, long long width) {
    const int row = threadIdx.x / N_UNITS, unit = threadIdx.x % N_UNITS;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (STRIDE > TILE_K && row >= TILE_K) break;
      copy_unit<ALIGNED>(to + (row + i * STRIDE) * N_UNITS + unit, from + i * stride, i * STRIDE < left ? count : 0);
    }
    from += TILE_K * width;
    left -= TILE_K;
  }
};

/// Columns of the tile that thread column x owns: single ones where b's tile runs along k, else units.
DEVICE int column_of(int x, int j) { return B_TRANSPOSED ? x + j * THREADS_N : j / 4 * (THREADS_N * 4) + x * 4 + j % 4; }

/// Adds `tiles` tiles to the sums. fetch(buffer) starts the copies of the next tile into a buffer.
template <class Fetch>
DEVICE void multiply_tiles(float4* shared, int tiles, Sums& sums, const Fetch& fetch) {
  const int x = threadIdx.x % THREADS_N, y = threadIdx.x / THREADS_N;
#pragma unroll
  for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) sums[i][j] = 0;
  }
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < tiles) fetch(shared + s * STAGE_SIZE);
    commit_copies();
  }
  int stage = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    wait_copies<STAGES - 2>();
    __syncthreads();  // this tile is here, and nobody reads the one before it any more
    if (tile + STAGES - 1 < tiles) fetch(shared + (stage == 0 ? STAGES - 1 : stage - 1) * STAGE_SIZE);
    commit_copies();
    const float4* const a = shared + stage * STAGE_SIZE;
    const float4* const b = a + A_SIZE;
#pragma unroll
    for (int unit = 0; unit < K_UNITS; ++unit) {
      float4 fa[THREAD_M];
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) fa[i] = a[(y + i * THREADS_M) * K_PITCH + unit];
      if (B_TRANSPOSED) {
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j) {
          const float4 fb = b[(x + j * THREADS_N) * K_PITCH + unit];
#pragma unroll
          for (int i = 0; i < THREAD_M; ++i) {
            sums[i][j] = fmaf(fa[i].x, fb.x, sums[i][j]);
            sums[i][j] = fmaf(fa[i].y, fb.y, sums[i][j]);
            sums[i][j] = fmaf(fa[i].z, fb.z, sums[i][j]);
            sums[i][j] = fmaf(fa[i].w, fb.w, sums[i][j]);
          }
        }
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float fb[THREAD_N];
#pragma unroll
          for (int j = 0; j < THREAD_N; j += 4) *(float4*)&fb[j] = b[(unit * 4 + e) * N_UNITS + j / 4 * THREADS_N + x];
#pragma unroll
          for (int i = 0; i < THREAD_M; ++i) {
            const float left = e == 0 ? fa[i].x : e == 1 ? fa[i].y : e == 2 ? fa[i].z : fa[i].w;
#pragma unroll
            for (int j = 0; j < THREAD_N; ++j) sums[i][j] = fmaf(left, fb[j], sums[i][j]);
          }
        }
      }
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
}

DEVICE void store_tile(const Sums& sums, float* c, Tile tile, long long m, long long n) {
  const int x = threadIdx.x % THREADS_N, y = threadIdx.x / THREADS_N;
#pragma unroll
  for (int i = 0; i < THREAD_M; ++i) {
    const long long row = tile.row + y + i * THREADS_M;
    if (row >= m) continue;
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) {
      const long long column = tile.column + column_of(x, j);
      if (column >= n) continue;
      float* to = c + row * n + column;
      if (B_TRANSPOSED || !C_ALIGNED) *to = sums[i][j];
      else if (j % 4 == 0) *(float4*)to = make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
    }
  }
}
