// c[M, N] = a[M, K] · b[K, N] in float32 with fused multiply-adds, row-major throughout.
// A block computes TILE_M × TILE_N, a thread THREAD_M × THREAD_N of it. Two buffers of shared memory; a is stored transposed,
// so that a thread reads its rows as vectors.
constexpr int THREADS_N = TILE_N / THREAD_N;
constexpr int THREADS_M = TILE_M / THREAD_M;
constexpr int THREADS = THREADS_M * THREADS_N;
constexpr int PAD = 4;
constexpr int A_WIDTH = TILE_M + PAD;

extern "C" __global__ void __launch_bounds__(THREADS) gemm(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                                          long long m, long long n, long long k) {
  __shared__ __align__(16) float as[2][TILE_K][A_WIDTH];
  __shared__ __align__(16) float bs[2][TILE_K][TILE_N];
  const long long tiles_m = (m + TILE_M - 1) / TILE_M;
  const long long tiles_n = (n + TILE_N - 1) / TILE_N;
  const long long per_group = GROUP_M * tiles_n;
  const long long group = blockIdx.x / per_group;
  const long long group_rows = tiles_m - group * GROUP_M < GROUP_M ? tiles_m - group * GROUP_M : GROUP_M;
  const long long tile_m = (group * GROUP_M + blockIdx.x % per_group % group_rows) * TILE_M;
  const long long tile_n = blockIdx.x % per_group / group_rows * TILE_N;
  const int tx = threadIdx.x % THREADS_N;
  const int ty = threadIdx.x / THREADS_N;

  constexpr int A_LOADS = TILE_M * TILE_K / 4 / THREADS;
  constexpr int B_LOADS = TILE_K * TILE_N / 4 / THREADS;
  float4 next_a[A_LOADS], next_b[B_LOADS];
  const auto read = [](const float* row, long long col, long long limit, bool valid) {
    if (ALIGNED) return valid && col < limit ? *(const float4*)(row + col) : make_float4(0, 0, 0, 0);
    float4 v = make_float4(0, 0, 0, 0);
    if (valid && col < limit) v.x = row[col];
    if (valid && col + 1 < limit) v.y = row[col + 1];
    if (valid && col + 2 < limit) v.z = row[col + 2];
    if (valid && col + 3 < limit) v.w = row[col + 3];
    return v;
  };
  const auto fetch = [&](long long k0) {
#pragma unroll
    for (int i = 0; i < A_LOADS; ++i) {
      const int at = threadIdx.x + i * THREADS;
      const long long row = tile_m + at / (TILE_K / 4);
      next_a[i] = read(a + (row < m ? row : 0) * k, k0 + at % (TILE_K / 4) * 4, k, row < m);
    }
#pragma unroll
    for (int i = 0; i < B_LOADS; ++i) {
      const int at = threadIdx.x + i * THREADS;
      const long long row = k0 + at / (TILE_N / 4);
      next_b[i] = read(b + (row < k ? row : 0) * n, tile_n + at % (TILE_N / 4) * 4, n, row < k);
    }
  };
  const auto keep = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < A_LOADS; ++i) {
      const int at = threadIdx.x + i * THREADS;
      const int row = at / (TILE_K / 4), col = at % (TILE_K / 4) * 4;
      as[buffer][col][row] = next_a[i].x;
      as[buffer][col + 1][row] = next_a[i].y;
      as[buffer][col + 2][row] = next_a[i].z;
      as[buffer][col + 3][row] = next_a[i].w;
    }
#pragma unroll
    for (int i = 0; i < B_LOADS; ++i) {
      const int at = threadIdx.x + i * THREADS;
      *(float4*)&bs[buffer][at / (TILE_N / 4)][at % (TILE_N / 4) * 4] = next_b[i];
    }
  };

  float sums[THREAD_M][THREAD_N];
#pragma unroll
  for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) sums[i][j] = 0;
  }
  fetch(0);
  keep(0);
  __syncthreads();
  int buffer = 0;
  for (long long k0 = 0; k0 < k; k0 += TILE_K) {
    const bool more = k0 + TILE_K < k;
    if (more) fetch(k0 + TILE_K);
#pragma unroll
    for (int p = 0; p < TILE_K; ++p) {
      float fa[THREAD_M], fb[THREAD_N];
#pragma unroll
      for (int i = 0; i < THREAD_M; i += 4) *(float4*)&fa[i] = *(const float4*)&as[buffer][p][i / 4 * (THREADS_M * 4) + ty * 4];
#pragma unroll
      for (int j = 0; j < THREAD_N; j += 4) *(float4*)&fb[j] = *(const float4*)&bs[buffer][p][j / 4 * (THREADS_N * 4) + tx * 4];
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
        for (int j = 0; j < THREAD_N; ++j) sums[i][j] = fmaf(fa[i], fb[j], sums[i][j]);
      }
    }
    if (more) {
      keep(buffer ^ 1);
      __syncthreads();
      buffer ^= 1;
    }
  }
#pragma unroll
  for (int i = 0; i < THREAD_M; ++i) {
    const long long row = tile_m + i / 4 * (THREADS_M * 4) + ty * 4 + i % 4;
    if (row >= m) continue;
#pragma unroll
    for (int j = 0; j < THREAD_N; j += 4) {
      const long long col = tile_n + j / 4 * (THREADS_N * 4) + tx * 4;
      if (ALIGNED) {
        if (col < n) *(float4*)(c + row * n + col) = *(const float4*)&sums[i][j];
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (col + e < n) c[row * n + col + e] = sums[i][j + e];
        }
      }
    }
  }
}
