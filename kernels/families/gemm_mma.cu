// c[M, N] = a[M, K] · b[K, N] on tensor cores (mma.sync m16n8k16, float32 accumulators), row-major throughout.
// A block computes TILE_M × TILE_N; each warp WARP_M × WARP_N of it. Tiles of TILE_K columns travel through STAGES buffers
// of shared memory by asynchronous copies; rows are swizzled in units of 16 bytes, so that ldmatrix meets no bank conflict.
constexpr int WARPS_M = TILE_M / WARP_M;
constexpr int WARPS_N = TILE_N / WARP_N;
constexpr int THREADS = WARPS_M * WARPS_N * 32;
constexpr int A_UNITS = TILE_K / 8;       // 16-byte units per row of a's tile
constexpr int B_UNITS = TILE_N / 8;       // and of b's
constexpr int A_BYTES = TILE_M * TILE_K * 2;
constexpr int B_BYTES = TILE_K * TILE_N * 2;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int FRAGMENTS_M = WARP_M / 16;
constexpr int FRAGMENTS_N = WARP_N / 8;
constexpr int STEPS = TILE_K / 16;

__device__ __forceinline__ void copy_async(unsigned to, const T* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void load_transposed(unsigned (&r)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Byte offset of a 16-byte unit in a tile whose rows have `units` of them.
template <int UNITS>
__device__ __forceinline__ int swizzled(int row, int unit) {
  if (UNITS >= 8) return (row * UNITS + (unit ^ (row & 7))) * 16;
  // Narrow rows: several share 128 bytes, so the row's pair decides.
  return (row * UNITS + (unit ^ ((row / (8 / UNITS)) & (UNITS - 1)))) * 16;
}

/// One element's worth of unaligned edges: eight values gathered one by one.
__device__ __forceinline__ void gather(unsigned char* to, const T* row, long long col, long long limit, bool valid) {
  T eight[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) eight[i] = valid && col + i < limit ? row[col + i] : T(0.0f);
  *(uint4*)to = *(uint4*)eight;
}

extern "C" __global__ void __launch_bounds__(THREADS) gemm(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                                          long long m, long long n, long long k) {
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  // Blocks go down GROUP_M rows of tiles before they step to the next column: what a wave reads stays in L2.
  const long long tiles_m = (m + TILE_M - 1) / TILE_M;
  const long long tiles_n = (n + TILE_N - 1) / TILE_N;
  const long long per_group = GROUP_M * tiles_n;
  const long long group = blockIdx.x / per_group;
  const long long group_rows = tiles_m - group * GROUP_M < GROUP_M ? tiles_m - group * GROUP_M : GROUP_M;
  const long long tile_m = (group * GROUP_M + blockIdx.x % per_group % group_rows) * TILE_M;
  const long long tile_n = blockIdx.x % per_group / group_rows * TILE_N;
  const int warp_m = warp / WARPS_N * WARP_M;
  const int warp_n = warp % WARPS_N * WARP_N;

  // Every thread copies the same unit of every A_ROWS-th row of a's tile and B_ROWS-th row of b's: addresses advance by
  // constants, so that the main loop computes next to none.
  constexpr int A_ROWS = THREADS / A_UNITS;
  constexpr int B_ROWS = THREADS / B_UNITS;
  const int a_row = threadIdx.x / A_UNITS, a_unit = threadIdx.x % A_UNITS;
  const int b_row = threadIdx.x / B_UNITS, b_unit = threadIdx.x % B_UNITS;
  const T* a_from = a + (tile_m + a_row) * k + a_unit * 8;
  const T* b_from = b + b_row * n + tile_n + b_unit * 8;
  const long long a_step = A_ROWS * k, b_step = B_ROWS * n, b_tile = TILE_K * n;
  const int rows_left = (int)(m - tile_m < TILE_M ? m - tile_m : TILE_M);
  const bool b_inside = tile_n + b_unit * 8 < n;
  const auto fetch = [&](long long step, int stage) {
    const long long k0 = step * TILE_K;
    const int base = stage * STAGE_BYTES;
    const int depth_left = (int)(k - k0 < TILE_K ? k - k0 : TILE_K);
#pragma unroll
    for (int i = 0; i < TILE_M / A_ROWS; ++i) {
      const int row = a_row + i * A_ROWS;
      const int at = base + swizzled<A_UNITS>(row, a_unit);
      const bool valid = row < rows_left && a_unit * 8 < depth_left;
      if (ALIGNED) copy_async(shared_at + at, valid ? a_from + k0 + i * a_step : a, valid ? 16 : 0);
      else gather(shared + at, a + (row < rows_left ? tile_m + row : 0) * k, k0 + a_unit * 8, k, row < rows_left);
    }
#pragma unroll
    for (int i = 0; i < TILE_K / B_ROWS; ++i) {
      const int row = b_row + i * B_ROWS;
      const int at = base + A_BYTES + swizzled<B_UNITS>(row, b_unit);
      const bool valid = row < depth_left && b_inside;
      if (ALIGNED) copy_async(shared_at + at, valid ? b_from + step * b_tile + i * b_step : b, valid ? 16 : 0);
      else gather(shared + at, b + (row < depth_left ? k0 + row : 0) * n, tile_n + b_unit * 8, n, row < depth_left);
    }
  };
  const auto commit = [] { asm volatile("cp.async.commit_group;" ::: "memory"); };

  float sums[FRAGMENTS_M][FRAGMENTS_N][4];
#pragma unroll
  for (int i = 0; i < FRAGMENTS_M; ++i) {
#pragma unroll
    for (int j = 0; j < FRAGMENTS_N; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;
    }
  }

  unsigned fa[2][FRAGMENTS_M][4], fb[2][FRAGMENTS_N / 2][4];
  const auto load_fragments = [&](int stage, int step, int into) {
    const unsigned at_a = shared_at + stage * STAGE_BYTES;
    const unsigned at_b = at_a + A_BYTES;
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i) load_matrices(fa[into][i], at_a + swizzled<A_UNITS>(warp_m + i * 16 + lane % 16, step * 2 + lane / 16));
#pragma unroll
    for (int j = 0; j < FRAGMENTS_N / 2; ++j) load_transposed(fb[into][j], at_b + swizzled<B_UNITS>(step * 16 + lane % 16, warp_n / 8 + j * 2 + lane / 16));
  };

  const long long total = (k + TILE_K - 1) / TILE_K;
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < total) fetch(s, s);
    commit();
  }
  asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
  __syncthreads();
  load_fragments(0, 0, 0);
  int stage = 0;
  for (long long tile = 0; tile < total; ++tile) {
    const int next_stage = stage + 1 == STAGES ? 0 : stage + 1;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      if (step == STEPS - 1) {  // the next tile must have landed before its first fragments are read
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        if (tile + 1 < total) load_fragments(next_stage, 0, (step + 1) % 2);
      } else {
        load_fragments(stage, step + 1, (step + 1) % 2);
      }
      if (step == 0) {  // into the buffer that everybody left at the last barrier
        const long long ahead = tile + STAGES - 1;
        const int free_stage = stage == 0 ? STAGES - 1 : stage - 1;
        if (ahead < total) fetch(ahead, free_stage);
        commit();
      }
#pragma unroll
      for (int i = 0; i < FRAGMENTS_M; ++i) {
#pragma unroll
        for (int j = 0; j < FRAGMENTS_N; ++j) multiply(sums[i][j], fa[step % 2][i], fb[step % 2][j / 2][(j % 2) * 2], fb[step % 2][j / 2][(j % 2) * 2 + 1]);
      }
    }
    stage = next_stage;
  }

#pragma unroll
  for (int i = 0; i < FRAGMENTS_M; ++i) {
#pragma unroll
    for (int j = 0; j < FRAGMENTS_N; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const long long row = tile_m + warp_m + i * 16 + lane / 4 + half * 8;
        const long long col = tile_n + warp_n + j * 8 + lane % 4 * 2;
        if (row >= m) continue;
        const T low = T(sums[i][j][half * 2]), high = T(sums[i][j][half * 2 + 1]);
        if (ALIGNED && col < n) {  // n is a multiple of 8: both or neither
          T pair[2] = {low, high};
          *(unsigned*)(c + row * n + col) = *(unsigned*)pair;
        } else {
          if (col < n) c[row * n + col] = low;
          if (col + 1 < n) c[row * n + col + 1] = high;
        }
      }
    }
  }
}
