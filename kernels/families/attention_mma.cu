// y = softmax(q · kᵀ · scale) · v on tensor cores, for q, k, v, y of [heads, sequence, DIM]. One block owns TILE_Q queries of
// one head, a warp WARP_Q of them; keys and values pass by in tiles of TILE_K. The softmax is online: scores never leave
// registers, `top` and `total` are the running maximum and sum, and what was summed is rescaled when the maximum grows.
constexpr int THREADS = TILE_Q / WARP_Q * 32;
constexpr int UNITS = (DIM + 15) / 16 * 2;  // per row; the last one may be padding
constexpr int ROW_BYTES = pitch<UNITS>() * 16;
constexpr int Q_BYTES = TILE_Q * ROW_BYTES;
constexpr int K_BYTES = TILE_K * ROW_BYTES;
constexpr int STAGE_BYTES = 2 * K_BYTES;  // keys, then values
constexpr int FRAGMENTS_Q = WARP_Q / 16;
constexpr int FRAGMENTS_K = TILE_K / 8;
constexpr int FRAGMENTS_D = UNITS;
constexpr int STEPS = UNITS / 2;  // of 16 along DIM
constexpr bool ALIGNED = DIM % 8 == 0;  // rows start at multiples of 16 bytes
#define MASKED __int_as_float(NEGATIVE ? 0x7f800000 : 0xff800000)  // the infinity whose weight is zero

/// The score whose weight is larger.
DEVICE float stronger(float a, float b) { return NEGATIVE ? fminf(a, b) : fmaxf(a, b); }
DEVICE float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Rows first … first + ROWS - 1 of a head into shared memory; zeros beyond the sequence.
template <int ROWS>
DEVICE void fetch(unsigned char* shared, unsigned at, const T* head, int first, int sequence) {
#pragma unroll
  for (int i = 0; i < (ROWS * UNITS + THREADS - 1) / THREADS; ++i) {
    // Where the block covers whole rows, a thread keeps its unit and walks down.
    const int index = threadIdx.x + i * THREADS;
    const int row = THREADS % UNITS == 0 ? threadIdx.x / UNITS + i * (THREADS / UNITS) : index / UNITS;
    const int unit = THREADS % UNITS == 0 ? threadIdx.x % UNITS : index % UNITS;
    if (ROWS * UNITS % THREADS != 0 && index >= ROWS * UNITS) break;
    const bool valid = first + row < sequence && unit * 8 < DIM;
    const T* from = head + (long long)(first + row) * DIM + unit * 8;
    const int offset = at + swizzled<UNITS>(row, unit);
    if (ALIGNED) copy_async((unsigned)__cvta_generic_to_shared(shared) + offset, from, valid ? 16 : 0);
    else gather(shared + offset, from, valid ? DIM - unit * 8 : 0);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) attention(const T* __restrict__ q, const T* __restrict__ k,
                                                               const T* __restrict__ v, T* __restrict__ y, int heads,
                                                               int sequence, float scale_log2) {
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  // HEAD_GROUP heads advance together, the longest rows of a causal mask first; their keys and values stay in L2.
  const int tiles_q = (sequence + TILE_Q - 1) / TILE_Q;
  const int group = blockIdx.x / (tiles_q * HEAD_GROUP);
  const int in_group = blockIdx.x % (tiles_q * HEAD_GROUP);
  const int group_heads = min(heads - group * HEAD_GROUP, HEAD_GROUP);
  const int first_q = (tiles_q - 1 - in_group / group_heads) * TILE_Q;
  const long long base = (long long)(group * HEAD_GROUP + in_group % group_heads) * sequence * DIM;
  const int warp_row = warp * WARP_Q;
  const int first_row = first_q + warp_row;  // of this warp
  const int keys = CAUSAL ? min(sequence, first_q + TILE_Q) : sequence;
  const int tiles = (keys + TILE_K - 1) / TILE_K;
  const auto fetch_k = [&](int tile, int stage) {
    fetch<TILE_K>(shared, Q_BYTES + stage * STAGE_BYTES, k + base, tile * TILE_K, sequence);
  };
  const auto fetch_v = [&](int tile, int stage) {
    fetch<TILE_K>(shared, Q_BYTES + stage * STAGE_BYTES + K_BYTES, v + base, tile * TILE_K, sequence);
  };

  fetch<TILE_Q>(shared, 0, q + base, first_q, sequence);
  commit_copies();
#pragma unroll
  for (int s = 0; s < (STAGES == 1 ? 1 : STAGES - 1); ++s) {
    if (s < tiles) fetch_k(s, s);
    if (STAGES > 1 && s < tiles) fetch_v(s, s);
    commit_copies();
  }
  const unsigned q_at = shared_at + warp_row * ROW_BYTES;
  unsigned fq[Q_REGISTERS ? STEPS : 1][FRAGMENTS_Q][4];
  const auto load_queries = [&](int step, unsigned (&into)[FRAGMENTS_Q][4]) {
#pragma unroll
    for (int i = 0; i < FRAGMENTS_Q; ++i) load_matrices(into[i], q_at + swizzled<UNITS>(i * 16 + lane % 16, step * 2 + lane / 16));
  };
  if (Q_REGISTERS) {
    wait_copies<STAGES == 1 ? 1 : STAGES - 1>();
    __syncthreads();
#pragma unroll
    for (int step = 0; step < STEPS; ++step) load_queries(step, fq[Q_REGISTERS ? step : 0]);
  }

  float out[FRAGMENTS_Q][FRAGMENTS_D][4];
  float top[FRAGMENTS_Q][2], total[FRAGMENTS_Q][2];  // a lane holds two rows per fragment; `total` is the lane's own share
#pragma unroll
  for (int i = 0; i < FRAGMENTS_Q; ++i) {
#pragma unroll
    for (int j = 0; j < FRAGMENTS_D; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) out[i][j][e] = 0;
    }
    top[i][0] = top[i][1] = MASKED;
    total[i][0] = total[i][1] = 0;
  }

  int stage = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const int first_key = tile * TILE_K;
    wait_copies<STAGES == 1 ? 0 : STAGES - 2>();
    __syncthreads();  // this tile is here, and nobody reads the one before it any more
    if (STAGES == 1) {
      fetch_v(tile, 0);
    } else if (tile + STAGES - 1 < tiles) {
      const int free_stage = stage == 0 ? STAGES - 1 : stage - 1;
      fetch_k(tile + STAGES - 1, free_stage);
      fetch_v(tile + STAGES - 1, free_stage);
    }
    commit_copies();
    const bool active = !CAUSAL || first_key < first_row + WARP_Q;  // some query of this warp sees some key of this tile
    const unsigned k_at = shared_at + Q_BYTES + stage * STAGE_BYTES;
    float scores[FRAGMENTS_Q][FRAGMENTS_K][4];
    if (active) {
#pragma unroll
      for (int i = 0; i < FRAGMENTS_Q; ++i) {
#pragma unroll
        for (int j = 0; j < FRAGMENTS_K; ++j) {
#pragma unroll
          for (int e = 0; e < 4; ++e) scores[i][j][e] = 0;
        }
      }
#pragma unroll
      for (int step = 0; step < STEPS; ++step) {
        if (!Q_REGISTERS) load_queries(step, fq[0]);
#pragma unroll
        for (int j = 0; j < FRAGMENTS_K / 2; ++j) {
          unsigned fk[4];  // keys are rows of b transposed: no .trans
          load_matrices(fk, k_at + swizzled<UNITS>(j * 16 + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2));
#pragma unroll
          for (int i = 0; i < FRAGMENTS_Q; ++i) {
            multiply(scores[i][2 * j], fq[Q_REGISTERS ? step : 0][i], fk[0], fk[1]);
            multiply(scores[i][2 * j + 1], fq[Q_REGISTERS ? step : 0][i], fk[2], fk[3]);
          }
        }
      }
    }
    if (STAGES == 1) {
      wait_copies<0>();
      __syncthreads();  // the values are here, and nobody reads the keys any more
      if (tile + 1 < tiles) fetch_k(tile + 1, 0);
      commit_copies();
    }
    if (active) {
      if (first_key + TILE_K > (CAUSAL ? min(sequence, first_row + 1) : sequence)) {
#pragma unroll
        for (int i = 0; i < FRAGMENTS_Q; ++i) {
#pragma unroll
          for (int j = 0; j < FRAGMENTS_K; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              const int key = first_key + j * 8 + lane % 4 * 2 + e % 2;
              const int row = first_row + i * 16 + lane / 4 + e / 2 * 8;
              if (key >= sequence || (CAUSAL && key > row)) scores[i][j][e] = MASKED;
            }
          }
        }
      }
#pragma unroll
      for (int i = 0; i < FRAGMENTS_Q; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float peak = top[i][half];
#pragma unroll
          for (int j = 0; j < FRAGMENTS_K; ++j) peak = stronger(peak, stronger(scores[i][j][half * 2], scores[i][j][half * 2 + 1]));
          peak = stronger(peak, __shfl_xor_sync(0xffffffffu, peak, 1));
          peak = stronger(peak, __shfl_xor_sync(0xffffffffu, peak, 2));
          if (__any_sync(0xffffffffu, peak != top[i][half])) {
            // The difference of the rounded shifts: exactly what the earlier weights lack.
            const float keep = power_of_two(__fmul_rn(top[i][half], scale_log2) - __fmul_rn(peak, scale_log2));
            total[i][half] *= keep;
#pragma unroll
            for (int d = 0; d < FRAGMENTS_D; ++d) {
              out[i][d][half * 2] *= keep;
              out[i][d][half * 2 + 1] *= keep;
            }
            top[i][half] = peak;
          }
          const float shift = __fmul_rn(peak, scale_log2);
#pragma unroll
          for (int j = 0; j < FRAGMENTS_K; ++j) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              const float weight = power_of_two(fmaf(scores[i][j][half * 2 + e], scale_log2, -shift));
              scores[i][j][half * 2 + e] = weight;
              total[i][half] += weight;
            }
          }
        }
      }
      const unsigned v_at = k_at + K_BYTES;
#pragma unroll
      for (int step = 0; step < TILE_K / 16; ++step) {
        // Two accumulator fragments side by side have the layout of one left operand.
        unsigned weights[FRAGMENTS_Q][4];
#pragma unroll
        for (int i = 0; i < FRAGMENTS_Q; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            weights[i][half] = pack(scores[i][2 * step][half * 2], scores[i][2 * step][half * 2 + 1]);
            weights[i][half + 2] = pack(scores[i][2 * step + 1][half * 2], scores[i][2 * step + 1][half * 2 + 1]);
          }
        }
#pragma unroll
        for (int d = 0; d < FRAGMENTS_D / 2; ++d) {
          unsigned fv[4];
          load_transposed(fv, v_at + swizzled<UNITS>(step * 16 + lane % 16, d * 2 + lane / 16));
#pragma unroll
          for (int i = 0; i < FRAGMENTS_Q; ++i) {
            multiply(out[i][2 * d], weights[i], fv[0], fv[1]);
            multiply(out[i][2 * d + 1], weights[i], fv[2], fv[3]);
          }
        }
      }
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }

  // Through the warp's own rows of q's buffer, so that whole units are written.
  __syncwarp();
  unsigned char* staging = shared + warp_row * ROW_BYTES;
#pragma unroll
  for (int i = 0; i < FRAGMENTS_Q; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = total[i][half];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const float inverse = 1.0f / sum;
      const int row = i * 16 + lane / 4 + half * 8;
#pragma unroll
      for (int d = 0; d < FRAGMENTS_D; ++d) {
        *(unsigned*)(staging + swizzled<UNITS>(row, d) + lane % 4 * 4) = pack(out[i][d][half * 2] * inverse, out[i][d][half * 2 + 1] * inverse);
      }
    }
  }
  __syncwarp();
  for (int i = lane; i < WARP_Q * UNITS; i += 32) {
    const int row = i / UNITS, unit = i % UNITS;
    if (first_row + row >= sequence) break;
    T* to = y + base + (long long)(first_row + row) * DIM + unit * 8;
    const unsigned char* from = staging + swizzled<UNITS>(row, unit);
    if (ALIGNED) {
      if (unit * 8 < DIM) *(uint4*)to = *(const uint4*)from;
    } else {
      for (int e = 0; e < min(8, DIM - unit * 8); ++e) to[e] = ((const T*)from)[e];
    }
  }
}
