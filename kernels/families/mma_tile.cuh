// The main loop that matrix products and convolutions share: a block computes TILE_M × TILE_N of c[m, n] = a[m, k] · b[k, n],
// each warp WARP_M × WARP_N of it, in float32 accumulators. Tiles of TILE_K travel through STAGES buffers of shared memory by
// asynchronous copies; fragments are read one step ahead of the products that use them.
constexpr int WARPS_N = TILE_N / WARP_N;
constexpr int THREADS = TILE_M / WARP_M * WARPS_N * 32;
constexpr int A_UNITS = TILE_K / 8;                           // per row of a's tile, which is [TILE_M][TILE_K]
constexpr int B_UNITS = B_TRANSPOSED ? TILE_K / 8 : TILE_N / 8;  // b's tile is [TILE_N][TILE_K] or [TILE_K][TILE_N]
constexpr int A_BYTES = TILE_M * TILE_K * 2;
constexpr int STAGE_BYTES = A_BYTES + TILE_K * TILE_N * 2;
constexpr int FRAGMENTS_M = WARP_M / 16;
constexpr int FRAGMENTS_N = WARP_N / 8;
constexpr int STEPS = TILE_K / 16;

typedef float Sums[FRAGMENTS_M][FRAGMENTS_N][4];

/// One unit global → shared, of which `count` elements exist; ALIGN = elements that are sure to be contiguous and aligned.
template <int ALIGN>
DEVICE void copy_unit(unsigned char* shared, unsigned at, const T* from, int count) {
  const unsigned to = (unsigned)__cvta_generic_to_shared(shared) + at;
  if (ALIGN == 8) {
    copy_async(to, from, count > 0 ? 16 : 0);
  } else if (ALIGN == 1) {
    gather(shared + at, from, count);
  } else {
#pragma unroll
    for (int i = 0; i < 8; i += ALIGN) {
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to + i * 2), "l"(from + i), "n"(ALIGN * 2), "r"(count > i ? ALIGN * 2 : 0)
                   : "memory");
    }
  }
}

/// ROWS × TILE_K of a row-major matrix, walking along its rows. A thread keeps its unit column.
template <int ROWS, int ALIGN>
struct RowWalker {
  static constexpr int UNITS = TILE_K / 8;
  static constexpr int STRIDE = THREADS / UNITS;
  static constexpr int COUNT = (ROWS + STRIDE - 1) / STRIDE;
  const T* from;
  long long stride;  // elements between this thread's rows
  int rows;          // that exist, counted from this thread's first
  int left;          // elements of the row from this thread's unit on

  DEVICE RowWalker(const T* matrix, long long width, long long height, long long first_row, int first, int last) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
    const bool inside = first_row + row < height && (STRIDE <= ROWS || row < ROWS);
    from = matrix + (inside ? first_row + row : 0) * width + first + unit * 8;
    stride = STRIDE * width;
    rows = inside ? (int)min(height - first_row - row, (long long)ROWS) : 0;
    left = last - first - unit * 8;
  }
  DEVICE void fetch(unsigned char* shared, unsigned at) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (STRIDE > ROWS && row >= ROWS) break;
      copy_unit<ALIGN>(shared, at + swizzled<UNITS>(row + i * STRIDE, unit), from + i * stride, i * STRIDE < rows ? left : 0);
    }
    from += TILE_K;
    left -= TILE_K;
  }
};

/// TILE_K × COLUMNS of a row-major matrix, walking down its columns.
template <int COLUMNS, int ALIGN>
struct ColumnWalker {
  static constexpr int UNITS = COLUMNS / 8;
  static constexpr int STRIDE = THREADS / UNITS;
  static constexpr int COUNT = (TILE_K + STRIDE - 1) / STRIDE;
  const T* from;
  long long stride;
  int count;  // elements of this thread's unit that exist
  int left;   // rows from this thread's first on

  DEVICE ColumnWalker(const T* matrix, long long width, long long first_column, int first, int last) {
    const int row = threadIdx.x / UNITS;
    const long long column = first_column + threadIdx.x % UNITS * 8;
    from = matrix + (long long)(first + row) * width + column;
    stride = STRIDE * width;
    count = (int)max(min(width - column, 8ll), 0ll);
    left = last - first - row;
  }
  DEVICE void fetch(unsigned char* shared, unsigned at, long long width) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (STRIDE > TILE_K && row >= TILE_K) break;
      copy_unit<ALIGN>(shared, at + swizzled<UNITS>(row + i * STRIDE, unit), from + i * stride, i * STRIDE < left ? count : 0);
    }
    from += TILE_K * width;
    left -= TILE_K;
  }
};

DEVICE void clear(Sums& sums) {
#pragma unroll
  for (int i = 0; i < FRAGMENTS_M; ++i) {
#pragma unroll
    for (int j = 0; j < FRAGMENTS_N; ++j) sums[i][j][0] = sums[i][j][1] = sums[i][j][2] = sums[i][j][3] = 0;
  }
}

/// Multiplies `tiles` tiles, which make a tile of the result every `depth` of them: then finish() takes the sums, while the
/// copies for the next one are under way. fetch(at) starts the copies of the next tile into the buffer at byte `at`.
template <class Fetch, class Finish>
DEVICE void multiply_tiles(unsigned char* shared, int tiles, int depth, Sums& sums, const Fetch& fetch, const Finish& finish) {
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
      load_matrices(fa[into][which], at_a + swizzled<A_UNITS>(warp_m + which * 16 + lane % 16, step * 2 + lane / 16));
    } else if (B_TRANSPOSED) {
      const int j = which - FRAGMENTS_M;
      load_matrices(fb[into][j], at_b + swizzled<B_UNITS>(warp_n + j * 16 + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2));
    } else {
      const int j = which - FRAGMENTS_M;
      load_transposed(fb[into][j], at_b + swizzled<B_UNITS>(step * 16 + lane % 16, warp_n / 8 + j * 2 + lane / 16));
    }
  };

#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < tiles) fetch(s * STAGE_BYTES);
    commit_copies();
  }
  wait_copies<STAGES - 2>();
  __syncthreads();
#pragma unroll
  for (int which = 0; which < LOADS; ++which) load_fragment(which, 0, 0, 0);
  int stage = 0;
  int left = depth;
  for (int tile = 0; tile < tiles; ++tile) {
    const int next_stage = stage + 1 == STAGES ? 0 : stage + 1;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      const bool last = step == STEPS - 1;
      if (last) {  // the next tile must have landed before its first fragments are read
        wait_copies<STAGES - 2>();
        __syncthreads();
      }
      if (step == 0) {  // into the buffer that everybody left at the last barrier
        if (tile + STAGES - 1 < tiles) fetch((stage == 0 ? STAGES - 1 : stage - 1) * STAGE_BYTES);
        commit_copies();
      }
      const bool more = !last || tile + 1 < tiles;
      // Reads of the next fragments are spread among the products, so that neither waits for the other's queue. Columns go
      // back and forth: every product shares a fragment with the one before.
#pragma unroll
      for (int p = 0; p < FRAGMENTS_M * FRAGMENTS_N; ++p) {
        constexpr int APART = FRAGMENTS_M * FRAGMENTS_N / LOADS > 0 ? FRAGMENTS_M * FRAGMENTS_N / LOADS : 1;
        if (more && p % APART == 0 && p / APART < LOADS) {
          load_fragment(p / APART, last ? next_stage : stage, last ? 0 : step + 1, (step + 1) % 2);
        }
        const int i = p / FRAGMENTS_N, j = i % 2 ? FRAGMENTS_N - 1 - p % FRAGMENTS_N : p % FRAGMENTS_N;
        multiply(sums[i][j], fa[step % 2][i], fb[step % 2][j / 2][j % 2 * 2], fb[step % 2][j / 2][j % 2 * 2 + 1]);
      }
#pragma unroll
      for (int which = FRAGMENTS_M * FRAGMENTS_N; which < LOADS; ++which) {
        if (more) load_fragment(which, last ? next_stage : stage, last ? 0 : step + 1, (step + 1) % 2);
      }
    }
    stage = next_stage;
    if (--left == 0) {
      finish();
      if (PERSISTENT) clear(sums);
      left = depth;
    }
  }
}

/// Rounds the sums and writes the tile, sixteen rows of a warp at a time through shared memory, so that whole units are written.
/// A persistent block has a place for that behind its buffers, which are in use.
DEVICE void store_tile(unsigned char* shared, const Sums& sums, T* c, Tile tile, long long m, long long n) {
  constexpr int UNITS = WARP_N / 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long first_row = tile.row + warp / WARPS_N * WARP_M;
  const long long first_column = tile.column + warp % WARPS_N * WARP_N;
  unsigned char* staging = shared + (PERSISTENT ? STAGES * STAGE_BYTES : 0) + warp * 16 * UNITS * 16;
  if (!PERSISTENT) {
    wait_copies<0>();
    __syncthreads();  // nobody reads the tiles any more
  }
#pragma unroll
  for (int i = 0; i < FRAGMENTS_M; ++i) {
#pragma unroll
    for (int j = 0; j < FRAGMENTS_N; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        *(unsigned*)(staging + swizzled<UNITS>(lane / 4 + half * 8, j) + lane % 4 * 4) = pack(sums[i][j][half * 2], sums[i][j][half * 2 + 1]);
      }
    }
    __syncwarp();
#pragma unroll
    for (int at = lane; at < 16 * UNITS; at += 32) {
      const long long row = first_row + i * 16 + at / UNITS, column = first_column + at % UNITS * 8;
      const unsigned char* from = staging + swizzled<UNITS>(at / UNITS, at % UNITS);
      if (row >= m || column >= n) continue;
      T* to = c + row * n + column;
      if (C_ALIGNED) {
        *(uint4*)to = *(const uint4*)from;
      } else {
        for (int e = 0; e < 8 && column + e < n; ++e) to[e] = ((const T*)from)[e];
      }
    }
    __syncwarp();
  }
}

/// Writes the sums as they are: one share of [m, n] per block of a split.
DEVICE void store_share(const Sums& sums, float* share, Tile tile, long long m, long long n) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < FRAGMENTS_M; ++i) {
#pragma unroll
    for (int j = 0; j < FRAGMENTS_N; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const long long row = tile.row + warp / WARPS_N * WARP_M + i * 16 + lane / 4 + half * 8;
        const long long column = tile.column + warp % WARPS_N * WARP_N + j * 8 + lane % 4 * 2;
        if (row >= m || column >= n) continue;
        float* to = share + row * n + column;
        if (C_ALIGNED) {  // n is a multiple of 8: both or neither
          *(float2*)to = make_float2(sums[i][j][half * 2], sums[i][j][half * 2 + 1]);
        } else {
          to[0] = sums[i][j][half * 2];
          if (column + 1 < n) to[1] = sums[i][j][half * 2 + 1];
        }
      }
    }
  }
}
