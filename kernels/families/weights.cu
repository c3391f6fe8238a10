// y[m, n] = x[m, k] · w[n, k] of up to 64 rows of x: weights of 8 bits, or of 4, become 16-bit floats in registers, where they are the left
// operand of mma.sync. The order of k inside of an instruction is free: a lane's 16 bytes of a row serve it for two instructions per word.
constexpr int CHUNK = FOUR_BITS ? 128 : 64;  // of k: what a warp loads of a row at once
constexpr int PAIRS = FOUR_BITS ? 4 : 2;     // of weights in a word
constexpr int ROWS = WARPS_N * FRAGMENTS * 16;
constexpr int THREADS = WARPS_N * WARPS_K * 32;
/// Two weights in the low bits of these are the weights themselves and BASE: its last digit counts ones.
constexpr bool BRAIN = sizeof(MMA_TYPE) == 5;  // "bf16"
constexpr unsigned BASE = BRAIN ? 0x43004300 : 0x64006400;

template <class Do>
DEVICE unsigned of_pairs(unsigned a, unsigned b, const Do& function) {
  const Pair pair = function(*(const Pair*)&a, *(const Pair*)&b);
  return *(const unsigned*)&pair;
}
DEVICE unsigned less(unsigned a, unsigned b) {
  return of_pairs(a, b, [](Pair x, Pair y) { return __hsub2(x, y); });
}
DEVICE unsigned times(unsigned a, unsigned b) {
  return of_pairs(a, b, [](Pair x, Pair y) { return __hmul2(x, y); });
}

/// The weights of a word as pairs: of 8 bits neighbours, of 4 bits 0 with 4, 1 with 5, …, times their scale.
DEVICE void widen(unsigned word, unsigned scale, unsigned (&to)[PAIRS]) {
#pragma unroll
  for (int i = 0; i < PAIRS; ++i) {
    if (FOUR_BITS) {
      to[i] = times(less(word >> 4 * i & 0x000f000f | BASE, BASE | 0x00080008), scale);
      continue;
    }
    const unsigned bytes = __byte_perm(word, 0, i == 0 ? 0x4140 : 0x4342);
    to[i] = BRAIN ? less(bytes & 0x007f007f | BASE, bytes & 0x00800080 | BASE) : less(bytes ^ 0x00800080 | BASE, BASE | 0x00800080);
  }
}
/// What of x meets them.
DEVICE void load_right(const T* from, unsigned (&to)[PAIRS]) {
  if (FOUR_BITS) {
    const uint4 v = *(const uint4*)from;
    to[0] = __byte_perm(v.x, v.z, 0x5410), to[1] = __byte_perm(v.x, v.z, 0x7632);
    to[PAIRS - 2] = __byte_perm(v.y, v.w, 0x5410), to[PAIRS - 1] = __byte_perm(v.y, v.w, 0x7632);
  } else {
    const uint2 v = *(const uint2*)from;
    to[0] = v.x, to[1] = v.y;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) product(const T* __restrict__ x, const unsigned char* __restrict__ weights,
                                                              const T* __restrict__ scales, T* __restrict__ y) {
  __shared__ float shares[WARPS_K][TOKENS * 8][ROWS + 4];
  const int lane = threadIdx.x % 32, quad = lane / 4, part = lane % 4;
  const int warp_n = threadIdx.x / 32 % WARPS_N, warp_k = threadIdx.x / 32 / WARPS_N;
  const unsigned char* rows[FRAGMENTS][2];
  const T* scales_of[FRAGMENTS][2];
  const T* tokens[TOKENS];
#pragma unroll
  for (int i = 0; i < FRAGMENTS * 2; ++i) {
    const long long row = min((long long)blockIdx.x * ROWS + (warp_n * FRAGMENTS * 2 + i) * 8 + quad, N - 1ll);
    rows[i / 2][i % 2] = weights + row * (FOUR_BITS ? K / 2 : K) + part * 16;
    scales_of[i / 2][i % 2] = scales + row * (K / GROUP);
  }
#pragma unroll
  for (int i = 0; i < TOKENS; ++i) tokens[i] = x + (long long)min(i * 8 + quad, M - 1) * K + part * (CHUNK / 4);
  float sums[FRAGMENTS][TOKENS][4];
  clear(sums);
  for (int first = warp_k; first < K / CHUNK; first += WARPS_K * AHEAD) {
    uint4 loaded[AHEAD][FRAGMENTS][2];
    unsigned scale[AHEAD][FRAGMENTS][2];
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) {
      const int at = min(first + a * WARPS_K, K / CHUNK - 1);
#pragma unroll
      for (int i = 0; i < FRAGMENTS * 2; ++i) {
        loaded[a][i / 2][i % 2] = __ldcs((const uint4*)(rows[i / 2][i % 2] + at * 64ll));
        if (FOUR_BITS) scale[a][i / 2][i % 2] = *(const unsigned short*)(scales_of[i / 2][i % 2] + (at * CHUNK + part * 32) / GROUP) * 0x10001u;
      }
    }
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) {
      const int at = first + a * WARPS_K;
      if (at >= K / CHUNK) break;
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        unsigned left[FRAGMENTS][2][PAIRS], right[PAIRS];
#pragma unroll
        for (int i = 0; i < FRAGMENTS * 2; ++i) widen((&loaded[a][i / 2][i % 2].x)[word], scale[a][i / 2][i % 2], left[i / 2][i % 2]);
#pragma unroll
        for (int i = 0; i < TOKENS; ++i) {
          load_right(tokens[i] + (long long)at * CHUNK + word * PAIRS * 2, right);
#pragma unroll
          for (int j = 0; j < FRAGMENTS * PAIRS; j += 2) {
            const int f = j / PAIRS, p = j % PAIRS;
            const unsigned operand[4] = {left[f][0][p], left[f][1][p], left[f][0][p + 1], left[f][1][p + 1]};
            multiply(sums[f][i], operand, right[p], right[p + 1]);
          }
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < FRAGMENTS * TOKENS * 4; ++i) {
    const int f = i / 4 / TOKENS, token = i / 4 % TOKENS, e = i % 4;
    shares[warp_k][token * 8 + part * 2 + e % 2][(warp_n * FRAGMENTS + f) * 16 + quad + e / 2 * 8] = sums[f][token][e];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < M * ROWS; i += THREADS) {
    const int token = i / ROWS, column = i % ROWS;
    const long long index = (long long)blockIdx.x * ROWS + column;
    if (index >= N) continue;
    float sum = 0;
#pragma unroll
    for (int share = 0; share < WARPS_K; ++share) sum += shares[share][token][column];
    y[(long long)token * N + index] = T(FOUR_BITS ? sum : sum * float(scales[index]));
  }
}
