// y[m, n] = x[m, k] · w[n, k] of few rows of x: weights of 8 bits, or of 4, become 16-bit floats in
// registers, where they are the left operand of mma.sync. The order of k inside of an instruction
// is free: a lane's 16 bytes of a row serve it for several instructions.
constexpr int CHUNK = FOUR_BITS ? 128 : 64;  // of k: what a warp loads of a row at once
constexpr int PAIRS = FOUR_BITS ? 4 : 2;     // of weights in a word
constexpr int ROWS = FRAGMENTS * 16;
constexpr int LAST = K / CHUNK - 1;
/// A load that is read once and may not be delayed: later loads would wait for all that are in
/// flight.
DEVICE uint4 load(const unsigned char* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

/// The weights of a word as pairs, times their scale: 8-bit weights pair neighbours, 4-bit weights
/// pair 0 with 4, 1 with 5, ….
DEVICE void widen(unsigned word, unsigned scale, unsigned (&to)[PAIRS]) {
  UNROLLED for (int i = 0; i < PAIRS; ++i)
      to[i] = FOUR_BITS ? fused(widen(word >> 4 * i), scale, SIGN)
                        : widen(__byte_perm(word, 0, i == 0 ? 0x4140 : 0x4342));
}
/// The elements of x that are multiplied with them.
DEVICE void load_right(const T* from, unsigned (&to)[PAIRS]) {
  __align__(8) unsigned words[PAIRS];
  UNROLLED for (int i = 0; i < PAIRS; i += 2) * (uint2*)(words + i) = *(const uint2*)(from + i * 2);
  UNROLLED for (int i = 0; i < PAIRS; ++i)
      to[i] = FOUR_BITS
                  ? __byte_perm(words[i / 2], words[PAIRS / 2 + i / 2], i % 2 ? 0x7632 : 0x5410)
                  : words[i];
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    product(const T* __restrict__ x, const unsigned char* __restrict__ weights,
            const T* __restrict__ scales, T* __restrict__ y) {
  __shared__ float partial_sums[WARPS][TOKENS * 8][ROWS + 4];
  const int warp = threadIdx.x / 32, quad = threadIdx.x % 32 / 4, part = threadIdx.x % 4;
  const int top = blockIdx.y * TOKENS * 8;
  const unsigned char* rows[FRAGMENTS * 2];
  const T *scales_of[FRAGMENTS * 2], *tokens[TOKENS];
  UNROLLED for (int i = 0; i < FRAGMENTS * 2; ++i) {
    const long long row = min((long long)blockIdx.x * ROWS + i * 8 + quad, N - 1ll);
    rows[i] = weights + row * (FOUR_BITS ? K / 2 : K) + part * 16;
    scales_of[i] = scales + row * (K / GROUP);
  }
  UNROLLED for (int i = 0; i < TOKENS; ++i)
      tokens[i] = x + min(top + i * 8 + quad, M - 1) * (long long)K + part * (CHUNK / 4);
  float sums[FRAGMENTS][TOKENS][4];
  clear(sums);
  for (int first = warp; first <= LAST; first += WARPS * AHEAD) {
    uint4 loaded[AHEAD][FRAGMENTS * 2];
    unsigned scale[AHEAD][FRAGMENTS * 2];
    UNROLLED for (int i = 0; i < AHEAD * FRAGMENTS * 2; ++i) {
      const int a = i / (FRAGMENTS * 2), row = i % (FRAGMENTS * 2),
                at = min(first + a * WARPS, LAST);
      loaded[a][row] = load(rows[row] + at * 64ll);
      if (FOUR_BITS)
        scale[a][row] = *(const unsigned short*)(scales_of[row] +
                                                 (at * CHUNK + part * 32) / GROUP) *
                        0x10001u;
    }
    UNROLLED for (int i = 0; i < AHEAD * 4; ++i) {
      const int a = i / 4, word = i % 4, at = first + a * WARPS;
      if (at > LAST) break;
      unsigned left[FRAGMENTS * 2][PAIRS], right[PAIRS];
      UNROLLED for (int row = 0; row < FRAGMENTS * 2; ++row)
          widen((&loaded[a][row].x)[word], scale[a][row], left[row]);
      UNROLLED for (int token = 0; token < TOKENS; ++token) {
        load_right(tokens[token] + (long long)at * CHUNK + word * PAIRS * 2, right);
        UNROLLED for (int j = 0; j < FRAGMENTS * PAIRS; j += 2) {
          const int f = j / PAIRS, p = j % PAIRS;
          const unsigned operand[4] = {left[f * 2][p], left[f * 2 + 1][p], left[f * 2][p + 1],
                                       left[f * 2 + 1][p + 1]};
          multiply(sums[f][token], operand, right[p], right[p + 1]);
        }
      }
    }
  }
  UNROLLED for (int i = 0; i < FRAGMENTS * TOKENS * 4; ++i) {
    const int f = i / 4 / TOKENS, token = i / 4 % TOKENS, e = i % 4;
    partial_sums[warp][token * 8 + part * 2 + e % 2][f * 16 + quad + e / 2 * 8] = sums[f][token][e];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < min(M - top, TOKENS * 8) * ROWS; i += WARPS * 32) {
    const int token = i / ROWS, row = i % ROWS;
    const long long index = (long long)blockIdx.x * ROWS + row;
    float sum = 0;
    for (int share = 0; share < WARPS && index < N; ++share) sum += partial_sums[share][token][row];
    if (index < N)
      y[(long long)(top + token) * N + index] = T(FOUR_BITS ? sum : sum * float(scales[index]));
  }
}
