// y = softmax(q · kᵀ · scale) · v in float32 with fused multiply-adds, for q, y of [heads,
// sequence, DIM] and the keys of attention_queries.cuh. One block owns TILE_Q queries of one head;
// keys and values pass by in tiles of TILE_K. Sixteen threads share ROWS queries: each takes every
// sixteenth key of the scores and every sixteenth unit (four columns) of the output. The softmax is
// online.
constexpr int ROW_THREADS = TILE_Q / ROWS;
constexpr int THREADS = 16 * ROW_THREADS;
constexpr int UNITS = (DIM + 3) / 4;    // of four floats
constexpr int PITCH = UNITS | 1;        // odd: eight rows of one unit lie in different banks
constexpr int KEYS = TILE_K / 16;       // keys of a thread
constexpr int OUT = (UNITS + 15) / 16;  // units of a thread
constexpr int WEIGHT_PITCH = TILE_K + 4;
constexpr bool ALIGNED = DIM % 4 == 0;

/// Rows first … first + ROWS - 1 of a head into shared memory; zeros beyond the sequence.
template <int COUNT>
DEVICE void fetch(float4* to, const float* head, int first, int sequence) {
#pragma unroll 4
  for (int i = threadIdx.x; i < COUNT * UNITS; i += THREADS) {
    const int row = i / UNITS, unit = i % UNITS;
    const bool valid = first + row < sequence;
    const float* from = head + (long long)(first + row) * DIM + unit * 4;
    float4* at = to + row * PITCH + unit;
    if (ALIGNED) copy_async<16>(shared_address(at), from, valid);
    for (int e = 0; !ALIGNED && e < 4; ++e)
      ((float*)at)[e] = valid && unit * 4 + e < DIM ? from[e] : 0;
  }
}
DEVICE float part(const float4& unit, int e) {
  return e == 0 ? unit.x : e == 1 ? unit.y : e == 2 ? unit.z : unit.w;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              const void* __restrict__ given, float* __restrict__ y, int heads, int sequence,
              float scale_log2) {
  extern __shared__ float4 shared[];
  float4* const queries = shared;
  float4* const keys = queries + TILE_Q * PITCH;
  float4* const values = keys + TILE_K * PITCH;
  float* const weights = (float*)(values + TILE_K * PITCH);
  const int x = threadIdx.x % 16;
  const int row0 = threadIdx.x / 16;  // a thread's rows are row0, row0 + ROW_THREADS, …
  const Task task{heads, sequence, given};
  const Queries mine(blockIdx.x, task);
  const int first_q = mine.first;
  const int begin = mine.begin(), tiles = mine.end();

  float out[ROWS][OUT][4] = {}, total[ROWS] = {}, top[ROWS];
  UNROLLED for (int i = 0; i < ROWS; ++i) top[i] = MASKED;
  fetch<TILE_Q>(queries, q + mine.base, first_q, sequence);
  fetch<TILE_K>(keys, k + mine.key_base, begin * TILE_K, mine.keys);
  for (int tile = begin; tile < tiles; ++tile) {
    const int first_key = tile * TILE_K;
    commit_copies();
    wait_copies<0>();
    __syncthreads();  // the keys have arrived, and all reads of the previous values are finished
    fetch<TILE_K>(values, v + mine.key_base, first_key, mine.keys);
    float scores[ROWS][KEYS] = {};
#pragma unroll 4
    for (int unit = 0; unit < UNITS; ++unit) {
      float4 a[ROWS], b[KEYS];
      UNROLLED for (int i = 0; i < ROWS; ++i)
          a[i] = queries[(row0 + i * ROW_THREADS) * PITCH + unit];
      UNROLLED for (int j = 0; j < KEYS; ++j) b[j] = keys[(x + j * 16) * PITCH + unit];
      UNROLLED for (int i = 0; i < ROWS; ++i) {
        UNROLLED for (int j = 0; j < KEYS; ++j) {
          UNROLLED for (int e = 0; e < 4; ++e)
              scores[i][j] = fmaf(part(a[i], e), part(b[j], e), scores[i][j]);
        }
      }
    }
    commit_copies();
    wait_copies<0>();
    __syncthreads();  // the values have arrived, and all reads of the keys are finished
    if (tile + 1 < tiles) fetch<TILE_K>(keys, k + mine.key_base, first_key + TILE_K, mine.keys);
    const bool masked = mine.partial(tile, first_q, TILE_Q);
    UNROLLED for (int i = 0; i < ROWS; ++i) {
      const int row = row0 + i * ROW_THREADS;
      float peak = top[i];
      UNROLLED for (int j = 0; j < KEYS; ++j) {
        const int key = first_key + x + j * 16;
        if (ADDS)
          scores[i][j] = with_mask(
              scores[i][j], scale_log2,
              key < mine.keys ? task.mask_of<float>(mine.head, first_q + row)[key] : 0);
        if (masked && (key > mine.last_key(first_q + row) || key < mine.first_key(first_q + row)))
          scores[i][j] = MASKED;
        peak = stronger(peak, scores[i][j]);
      }
      UNROLLED for (int offset = 8; offset > 0; offset /= 2)
          peak = stronger(peak, __shfl_xor_sync(0xffffffffu, peak, offset));
      // Subtracting the rounded shifts gives exactly the factor that earlier weights lack.
      const float steep = to_exponents(peak, scale_log2),
                  shift = peak == MASKED ? 0 : __fmul_rn(peak, steep);
      const float keep = exp2f(__fmul_rn(top[i], steep) - shift);
      top[i] = peak;
      total[i] *= keep;
      UNROLLED for (int c = 0; c < OUT; ++c) {
        UNROLLED for (int e = 0; e < 4; ++e) out[i][c][e] *= keep;
      }
      UNROLLED for (int j = 0; j < KEYS; ++j) {
        const float weight = exp2f(FAR ? __fmul_rn(scores[i][j], steep) - shift
                                       : fmaf(scores[i][j], steep, -shift));
        total[i] += weight;
        weights[row * WEIGHT_PITCH + x + j * 16] = weight;
      }
    }
    __syncwarp();  // a row's weights come from its own sixteen threads
#pragma unroll 2
    for (int key = 0; key < TILE_K; key += 4) {
      float4 p[ROWS];
      UNROLLED for (int i = 0; i < ROWS; ++i)
          p[i] = *(const float4*)&weights[(row0 + i * ROW_THREADS) * WEIGHT_PITCH + key];
      UNROLLED for (int e = 0; e < 4; ++e) {
        UNROLLED for (int c = 0; c < OUT; ++c) {
          if (UNITS % 16 != 0 && x + c * 16 >= UNITS) continue;
          const float4 value = values[(key + e) * PITCH + x + c * 16];
          UNROLLED for (int i = 0; i < ROWS; ++i) {
            UNROLLED for (int d = 0; d < 4; ++d)
                out[i][c][d] = fmaf(part(p[i], e), part(value, d), out[i][c][d]);
          }
        }
      }
    }
    __syncwarp();
  }

  UNROLLED for (int i = 0; i < ROWS; ++i) {
    const int row = first_q + row0 + i * ROW_THREADS;
    float sum = total[i];
    UNROLLED for (int offset = 8; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    const float inverse = ADDS && sum == 0 ? 0.0f : 1.0f / sum;  // a mask may leave no key
    UNROLLED for (int c = 0; c < OUT; ++c) {
      const int unit = x + c * 16;
      if (row >= sequence || unit >= UNITS) continue;
      float* to = y + mine.base + (long long)row * DIM + unit * 4;
      UNROLLED for (int e = 0; e < 4; ++e) out[i][c][e] *= inverse;
      if (ALIGNED)
        *(float4*)to = make_float4(out[i][c][0], out[i][c][1], out[i][c][2], out[i][c][3]);
      UNROLLED for (int e = 0; e < 4; ++e) {
        if (!ALIGNED && unit * 4 + e < DIM) to[e] = out[i][c][e];
      }
    }
  }
}
