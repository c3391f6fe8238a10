// C = alpha * A * B + beta * C in single precision. A is K x M, B is K x N, C is N x M, row-major;
// M, N and K are multiples of the tile MWG, NWG, KWG. gemm.json lists the parameters.
template <int WIDTH>
struct alignas(WIDTH >= 4 ? 16 : 4 * WIDTH) Pack {
  float s[WIDTH];
};
using PackM = Pack<VWM>;
using PackN = Pack<VWN>;

constexpr int kThreads = MDIMC * NDIMC;
// Packs of C that a thread computes; packs per row, and rows, of A and B that it loads.
constexpr int kPacksM = MWG / MDIMC / VWM, kPacksN = NWG / NDIMC / VWN;
constexpr int kLoadsA = MWG / MDIMA / VWM, kLoadsB = NWG / NDIMB / VWN;
constexpr int kRowsA = KWG / (kThreads / MDIMA), kRowsB = KWG / (kThreads / NDIMB);

/// Position of a thread's pack number `i` in the tile: packs are contiguous, or `threads` apart.
template <bool STRIDED>
__device__ int PackAt(int thread, int threads, int packs, int i) {
  return STRIDED ? i * threads + thread : thread * packs + i;
}

extern "C" __global__ void __launch_bounds__(MDIMC* NDIMC)
    gemm_tiled(int m, int n, int k, float alpha, float beta, const PackM* a, const PackN* b, PackM* c) {
  const int row_m = m / VWM, row_n = n / VWN;
  const int first_m = blockIdx.x * (MWG / VWM), first_n = blockIdx.y * (NWG / VWN);
#if SA || SB
  const int thread = threadIdx.y * MDIMC + threadIdx.x;
#endif
#if SA
  __shared__ PackM tile_a[KWG][MWG / VWM];
#endif
#if SB
  __shared__ PackN tile_b[KWG][NWG / VWN];
#endif
  PackM sums[kPacksN * VWN][kPacksM] = {};

  for (int k0 = 0; k0 < k; k0 += KWG) {
#if SA
#pragma unroll
    for (int row = 0; row < kRowsA; ++row) {
#pragma unroll
      for (int i = 0; i < kLoadsA; ++i) {
        const int y = thread / MDIMA * kRowsA + row, x = PackAt<STRM>(thread % MDIMA, MDIMA, kLoadsA, i);
        tile_a[y][x] = a[(k0 + y) * row_m + first_m + x];
      }
    }
#endif
#if SB
#pragma unroll
    for (int row = 0; row < kRowsB; ++row) {
#pragma unroll
      for (int i = 0; i < kLoadsB; ++i) {
        const int y = thread / NDIMB * kRowsB + row, x = PackAt<STRN>(thread % NDIMB, NDIMB, kLoadsB, i);
        tile_b[y][x] = b[(k0 + y) * row_n + first_n + x];
      }
    }
#endif
#if SA || SB
    __syncthreads();
#endif
    for (int k1 = 0; k1 < KWG; k1 += KWI) {
#pragma unroll
      for (int k2 = 0; k2 < KWI; ++k2) {
        const int y = k1 + k2;
        PackM from_a[kPacksM];
        PackN from_b[kPacksN];
#pragma unroll
        for (int i = 0; i < kPacksM; ++i) {
          const int x = PackAt<STRM>(threadIdx.x, MDIMC, kPacksM, i);
#if SA
          from_a[i] = tile_a[y][x];
#else
          from_a[i] = a[(k0 + y) * row_m + first_m + x];
#endif
        }
#pragma unroll
        for (int i = 0; i < kPacksN; ++i) {
          const int x = PackAt<STRN>(threadIdx.y, NDIMC, kPacksN, i);
#if SB
          from_b[i] = tile_b[y][x];
#else
          from_b[i] = b[(k0 + y) * row_n + first_n + x];
#endif
        }
#pragma unroll
        for (int j = 0; j < kPacksN * VWN; ++j) {
#pragma unroll
          for (int i = 0; i < kPacksM; ++i) {
#pragma unroll
            for (int lane = 0; lane < VWM; ++lane)
              sums[j][i].s[lane] += from_a[i].s[lane] * from_b[j / VWN].s[j % VWN];
          }
        }
      }
    }
#if SA || SB
    __syncthreads();
#endif
  }

#pragma unroll
  for (int j = 0; j < kPacksN * VWN; ++j) {
    const int y = (first_n + PackAt<STRN>(threadIdx.y, NDIMC, kPacksN, j / VWN)) * VWN + j % VWN;
#pragma unroll
    for (int i = 0; i < kPacksM; ++i) {
      PackM& out = c[y * row_m + first_m + PackAt<STRM>(threadIdx.x, MDIMC, kPacksM, i)];
      PackM old = out;
#pragma unroll
      for (int lane = 0; lane < VWM; ++lane) old.s[lane] = alpha * sums[j][i].s[lane] + beta * old.s[lane];
      out = old;
    }
  }
}
