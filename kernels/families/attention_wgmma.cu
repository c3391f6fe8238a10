// y = softmax(q · kᵀ · scale) · v through wgmma, for q, k, v, y of [heads, sequence, DIM]. A group of four warps has 64 queries. While
// the weights of one tile of keys multiply its values, the scores of the next become weights.
constexpr int FRAGMENTS_K = TILE_K / 8;
constexpr int Q_BYTES = tile_bytes<TILE_Q>();
constexpr int K_BYTES = tile_bytes<TILE_K>();
constexpr int KEYS_AT = Q_BYTES, VALUES_AT = Q_BYTES + STAGES * K_BYTES;

/// scores[64, TILE_K] = q · kᵀ, in the background.
DEVICE void start_scores(float (&scores)[FRAGMENTS_K][4], unsigned q, unsigned k) {
  start_products();
#pragma unroll
  for (int step = 0; step < UNITS / 2; ++step) {
    const unsigned long long a = operand(q + step / 4 * (TILE_Q * 128) + step % 4 * 32);
    const unsigned long long b = operand(k + step / 4 * (TILE_K * 128) + step % 4 * 32);
    if (step == 0) multiply_first(scores, a, b);
    else multiply(scores, a, b);
  }
  commit_products();
}

/// out[64, DIM] += weights · v, in the background.
DEVICE void start_output(float (&out)[UNITS][4], const unsigned (&weights)[TILE_K / 16][4], unsigned v) {
  start_products();
#pragma unroll
  for (int step = 0; step < TILE_K / 16; ++step) multiply_weights(out, weights[step], operand(v + step * 2048, TILE_K * 128));
  commit_products();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) attention(const T* __restrict__ q, const T* __restrict__ k,
                                                                  const T* __restrict__ v, T* __restrict__ y, int heads,
                                                                  int sequence, float scale_log2) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared);
  const Queries queries(heads, sequence);
  const int group_row = threadIdx.x / 128 * 64;
  const int warp_row = threadIdx.x / 32 * 16;
  const int keys = CAUSAL ? min(sequence, queries.first + TILE_Q) : sequence;
  const int tiles = (keys + TILE_K - 1) / TILE_K;
  // Of them, those of which some query of the group sees some key.
  const int mine = CAUSAL ? min(tiles, (queries.first + group_row + 64 + TILE_K - 1) / TILE_K) : tiles;
  const auto fetch_k = [&](int tile) {
    if (tile < tiles) fetch<TILE_K>(shared, KEYS_AT + tile % STAGES * K_BYTES, k + queries.base, tile * TILE_K, sequence);
  };
  const auto fetch_v = [&](int tile) {
    if (tile < tiles) fetch<TILE_K>(shared, VALUES_AT + tile % STAGES * K_BYTES, v + queries.base, tile * TILE_K, sequence);
  };

  fetch<TILE_Q>(shared, 0, q + queries.base, queries.first, sequence);
  fetch_k(0);
  commit_copies();
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    fetch_k(s + 1);
    fetch_v(s);
    commit_copies();
  }
  float scores[1][FRAGMENTS_K][4], out[1][UNITS][4];
  unsigned weights[TILE_K / 16][4];
  clear(scores);
  clear(out);
  Running running;
  float keep[2];
  const auto weigh = [&](int tile) {
    const int first_key = tile * TILE_K;
    if (first_key + TILE_K > (CAUSAL ? min(sequence, queries.first + group_row + 1) : sequence)) {
      Running::mask(scores[0], first_key, queries.first + warp_row, sequence);
    }
    running.weigh(scores[0], scale_log2, keep);
  };
  const auto pack_all = [&] {
#pragma unroll
    for (int step = 0; step < TILE_K / 16; ++step) pack_weights(weights[step], scores[0][2 * step], scores[0][2 * step + 1]);
  };

  wait_copies<STAGES - 1>();
  show_to_tensor_cores();
  __syncthreads();
  start_scores(scores[0], shared_at + group_row * 128, shared_at + KEYS_AT);
  wait_products<0>();
  settle(scores);
  weigh(0);
  pack_all();
  // The next keys and this tile's values are here, and nobody reads those before them any more.
  const auto arrive = [&] {
    wait_copies<STAGES - 2>();
    show_to_tensor_cores();
    __syncthreads();
  };
  const auto fetch_ahead = [&](int tile) {
    fetch_k(tile + STAGES);
    fetch_v(tile + STAGES - 1);
    commit_copies();
  };
  int tile = 0;
  for (; tile + 1 < mine; ++tile) {
    arrive();
    start_scores(scores[0], shared_at + group_row * 128, shared_at + KEYS_AT + (tile + 1) % STAGES * K_BYTES);
    start_output(out[0], weights, shared_at + VALUES_AT + tile % STAGES * K_BYTES);
    fetch_ahead(tile);
    wait_products<1>();
    settle(scores);
    weigh(tile + 1);
    wait_products<0>();
    settle(out);
    hold(weights);
    rescale(out[0], keep);
    pack_all();
  }
  arrive();
  start_output(out[0], weights, shared_at + VALUES_AT + tile % STAGES * K_BYTES);
  fetch_ahead(tile);
  wait_products<0>();
  settle(out);
  hold(weights);
  while (++tile < tiles) {  // what the other groups still need
    arrive();
    fetch_ahead(tile);
  }
  store_rows(shared, warp_row, out[0], running, queries, y, sequence);
}
