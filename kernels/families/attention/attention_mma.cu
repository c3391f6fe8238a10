// y = softmax(q · kᵀ · scale) · v through mma.sync, for q, y of [heads, sequence, DIM] and the keys
// of attention_queries.cuh. A warp has WARP_Q queries.
constexpr int FRAGMENTS_Q = WARP_Q / 16;
constexpr int FRAGMENTS_K = TILE_K / 8;
constexpr int STEPS = UNITS / 2;  // of 16 along DIM
constexpr int Q_BYTES = tile_bytes<TILE_Q>();
constexpr int K_BYTES = tile_bytes<TILE_K>();
constexpr int STAGE_BYTES = 2 * K_BYTES;  // keys, then values

extern "C" __global__ void __launch_bounds__(THREADS)
    attention(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
              const void* __restrict__ given, T* __restrict__ y, int heads, int sequence,
              float scale_log2) {
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared);
  const int lane = threadIdx.x % 32;
  const Task task{heads, sequence, given};
  const Queries queries(blockIdx.x, task);
  const int warp_row = threadIdx.x / 32 * WARP_Q;
  const int first_row = queries.first + warp_row;  // of this warp
  const int begin = queries.begin(), tiles = queries.end();
  const auto fetch_both = [&](int tile, int stage) {
    if (tile >= tiles) return;
    fetch<TILE_K>(shared, Q_BYTES + stage * STAGE_BYTES, k + queries.key_base, tile * TILE_K,
                  queries.keys);
    fetch<TILE_K>(shared, Q_BYTES + stage * STAGE_BYTES + K_BYTES, v + queries.key_base,
                  tile * TILE_K, queries.keys);
  };

  fetch<TILE_Q>(shared, 0, q + queries.base, queries.first, sequence);
  commit_copies();
  UNROLLED for (int s = 0; s < STAGES - 1; ++s) {
    fetch_both(begin + s, s);
    commit_copies();
  }
  unsigned fq[Q_REGISTERS ? STEPS : 1][FRAGMENTS_Q][4];
  const auto load_queries = [&](int step, unsigned(&into)[FRAGMENTS_Q][4]) {
    UNROLLED for (int i = 0; i < FRAGMENTS_Q; ++i) {
      load_matrices(into[i], shared_at + tile_offset<TILE_Q>(warp_row + i * 16 + lane % 16,
                                                             step * 2 + lane / 16));
    }
  };
  if (Q_REGISTERS) {
    wait_copies<STAGES - 1>();
    __syncthreads();
    UNROLLED for (int step = 0; step < STEPS; ++step)
        load_queries(step, fq[Q_REGISTERS ? step : 0]);
  }

  float out[FRAGMENTS_Q][UNITS][4];
  clear(out);
  Running running[FRAGMENTS_Q];
  int stage = 0;
  for (int tile = begin; tile < tiles; ++tile) {
    const int first_key = tile * TILE_K;
    wait_copies<STAGES - 2>();
    __syncthreads();  // this tile has arrived, and all reads of the previous one are finished
    fetch_both(tile + STAGES - 1, stage == 0 ? STAGES - 1 : stage - 1);
    commit_copies();
    const unsigned k_at = shared_at + Q_BYTES + stage * STAGE_BYTES;
    // some query of this warp sees some key of this tile
    if (tile < queries.end(first_row + WARP_Q)) {
      float scores[FRAGMENTS_Q][FRAGMENTS_K][4];
      clear(scores);
      UNROLLED for (int step = 0; step < STEPS; ++step) {
        if (!Q_REGISTERS) load_queries(step, fq[0]);
        UNROLLED for (int j = 0; j < FRAGMENTS_K / 2; ++j) {
          unsigned fk[4];  // keys are rows of b transposed: no .trans
          load_matrices(fk, k_at + tile_offset<TILE_K>(j * 16 + lane / 16 * 8 + lane % 8,
                                                       step * 2 + lane / 8 % 2));
          UNROLLED for (int i = 0; i < FRAGMENTS_Q; ++i) {
            multiply(scores[i][2 * j], fq[Q_REGISTERS ? step : 0][i], fk[0], fk[1]);
            multiply(scores[i][2 * j + 1], fq[Q_REGISTERS ? step : 0][i], fk[2], fk[3]);
          }
        }
      }
      const bool partial = queries.partial(tile, first_row, WARP_Q);
      UNROLLED for (int i = 0; i < FRAGMENTS_Q; ++i) {
        if (ADDS) {
          Added<FRAGMENTS_K> added;
          added.load(task, queries.head, first_key, first_row + i * 16);
          added.add_to(scores[i], scale_log2);
        }
        if (partial) Running::mask(scores[i], first_key, first_row + i * 16, queries);
        float keep[2];
        running[i].weigh(scores[i], scale_log2, keep);
        rescale(out[i], keep);
      }
      UNROLLED for (int step = 0; step < TILE_K / 16; ++step) {
        unsigned weights[FRAGMENTS_Q][4];
        UNROLLED for (int i = 0; i < FRAGMENTS_Q; ++i)
            pack_weights(weights[i], scores[i][2 * step], scores[i][2 * step + 1]);
        UNROLLED for (int d = 0; d < UNITS / 2; ++d) {
          unsigned fv[4];
          load_transposed(
              fv, k_at + K_BYTES + tile_offset<TILE_K>(step * 16 + lane % 16, d * 2 + lane / 16));
          UNROLLED for (int i = 0; i < FRAGMENTS_Q; ++i) {
            multiply(out[i][2 * d], weights[i], fv[0], fv[1]);
            multiply(out[i][2 * d + 1], weights[i], fv[2], fv[3]);
          }
        }
      }
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
  UNROLLED for (int i = 0; i < FRAGMENTS_Q; ++i) {
    const float inverses[2] = {running[i].inverse(0), running[i].inverse(1)};
    write_rows(out[i], inverses, first_row + i * 16 + threadIdx.x % 32 / 4, y + queries.base,
               sequence);
  }
}
