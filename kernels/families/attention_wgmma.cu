// y = softmax(q · kᵀ · scale) · v through wgmma, for q, k, v, y of [heads, sequence, DIM]. One warp loads tiles by tensor maps; a group
// of four warps has 64 queries. While the weights of one tile of keys multiply its values, the scores of the next become weights;
// and the groups take turns at the tensor cores, so that one takes its softmax while another's products run.
constexpr int GROUPS = TILE_Q / 64;
constexpr int THREADS = (GROUPS + 1) * 128;
constexpr int FRAGMENTS_K = TILE_K / 8;
constexpr int PANELS = (UNITS + PANEL - 1) / PANEL;
constexpr int Q_BYTES = tile_bytes<TILE_Q>();
constexpr int K_BYTES = tile_bytes<TILE_K>();
constexpr int KEYS_AT = Q_BYTES, VALUES_AT = KEYS_AT + STAGES * K_BYTES, BARRIERS_AT = VALUES_AT + STAGES * K_BYTES;

/// Of the tiles that have passed by: which buffer the next one has, and the parity of that buffer's phase.
struct Place {
  int stage = 0;
  unsigned parity = 0;
  DEVICE void advance() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
};

/// Barriers of a buffer: its tile has come; it may be written again.
struct Barriers {
  unsigned at;
  DEVICE unsigned full_k(int stage) const { return at + stage * 32; }
  DEVICE unsigned full_v(int stage) const { return at + stage * 32 + 8; }
  DEVICE unsigned free_k(int stage) const { return at + stage * 32 + 16; }
  DEVICE unsigned free_v(int stage) const { return at + stage * 32 + 24; }
  DEVICE unsigned full_q() const { return at + STAGES * 32; }
  DEVICE unsigned free_q() const { return at + STAGES * 32 + 8; }

  DEVICE void make() const {
#pragma unroll
    for (int i = 0; i < STAGES * 4 + 2; ++i) {
      const bool filled = i < STAGES * 4 ? i % 4 < 2 : i == STAGES * 4;
      // One arrival, with the bytes; or one of each warp that reads.
      make_barrier(at + i * 8, filled ? 1 : GROUPS * 4 * (i < STAGES * 4 ? CLUSTER : 1));
    }
    show_barriers();
  }
};

/// A cluster's work, of which a block has TILE_Q queries: in rounds, every other one backwards, as rows of a causal mask get shorter.
struct Work {
  Queries queries;
  int tiles;  // of keys, for any block of the cluster

  static DEVICE int count(int heads, int sequence) { return (sequence + TILE_Q * CLUSTER - 1) / (TILE_Q * CLUSTER) * heads; }
  static DEVICE int index(int round) {
    const int clusters = gridDim.x / CLUSTER, mine = blockIdx.x / CLUSTER;
    return round * clusters + (CAUSAL && round % 2 == 1 ? clusters - 1 - mine : mine);
  }
  /// Tiles with keys before `end`.
  static DEVICE int tiles_before(int end) { return (end + TILE_K - 1) / TILE_K; }

  DEVICE Work(int heads, int sequence, int round) : queries(heads, sequence, TILE_Q * CLUSTER, index(round)) {
    tiles = tiles_before(CAUSAL ? min(sequence, queries.first + TILE_Q * CLUSTER) : sequence);
    queries.first += blockIdx.x % CLUSTER * TILE_Q;
  }
};

/// One thread's part: everything that is read, in the order in which it is needed. Of keys and values each block of a cluster
/// fetches a share for all.
DEVICE void load_all(const CUtensorMap& q, const CUtensorMap& k, const CUtensorMap& v, unsigned shared_at, Barriers barriers, int heads,
                     int sequence) {
  constexpr int SHARE = TILE_K / CLUSTER;
  const int rank = blockIdx.x % CLUSTER;
  const int works = Work::count(heads, sequence);
  Place keys, values;
  for (int round = 0; Work::index(round) < works; ++round) {
    const Work work(heads, sequence, round);
    const auto load = [&](const CUtensorMap& map, int to, int tile, unsigned barrier) {
      expect_bytes(barrier, K_BYTES);
#pragma unroll
      for (int panel = 0; panel < PANELS; ++panel) {
        const unsigned at = shared_at + to + (panel * TILE_K + rank * SHARE) * 128;
        const int x = panel * 64, y = tile * TILE_K + rank * SHARE;
        if (CLUSTER == 1) copy_box(at, map, x, y, work.queries.head, barrier);
        else copy_box_to((1 << CLUSTER) - 1, at, map, x, y, work.queries.head, barrier);
      }
    };
    const auto load_keys = [&](int tile) {
      if (tile >= work.tiles) return;
      await(barriers.free_k(keys.stage), keys.parity ^ 1);
      load(k, KEYS_AT + keys.stage * K_BYTES, tile, barriers.full_k(keys.stage));
      keys.advance();
    };
    await(barriers.free_q(), round % 2 ^ 1);
    expect_bytes(barriers.full_q(), Q_BYTES);
#pragma unroll
    for (int panel = 0; panel < PANELS; ++panel) {
      copy_box(shared_at + panel * TILE_Q * 128, q, panel * 64, work.queries.first, work.queries.head, barriers.full_q());
    }
    load_keys(0);
    for (int tile = 0; tile < work.tiles; ++tile) {
      load_keys(tile + 1);
      await(barriers.free_v(values.stage), values.parity ^ 1);
      load(v, VALUES_AT + values.stage * K_BYTES, tile, barriers.full_v(values.stage));
      values.advance();
    }
  }
}

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

/// The groups' order at the tensor cores: each waits for the one before it.
DEVICE void await_turn(int group) {
  if (TURNS) asm volatile("bar.sync %0, 256;" ::"r"(group + 1) : "memory");
}
DEVICE void pass_turn(int group) {
  if (TURNS) asm volatile("bar.arrive %0, 256;" ::"r"((group + 1) % GROUPS + 1) : "memory");
}

/// This warp no longer reads the buffer, which all blocks of the cluster fill.
DEVICE void free_place(unsigned barrier) {
  const int lane = threadIdx.x % 32;
  if (CLUSTER == 1) {
    if (lane == 0) arrive(barrier);
  } else if (lane < CLUSTER) {
    arrive_at(barrier, lane);
  }
}

/// A group's part.
DEVICE void attend(T* y, unsigned shared_at, Barriers barriers, int heads, int sequence, float scale_log2) {
  const int group = threadIdx.x / 128 - 1;
  const int warp_row = threadIdx.x / 32 * 16 - 64;
  float scores[1][FRAGMENTS_K][4], out[1][UNITS][4];
  unsigned weights[TILE_K / 16][4];
  Place keys, values;
  const auto score = [&] { start_scores(scores[0], shared_at + group * 64 * 128, shared_at + KEYS_AT + keys.stage * K_BYTES); };
  const auto weighted = [&] { start_output(out[0], weights, shared_at + VALUES_AT + values.stage * K_BYTES); };
  const auto await_keys = [&] { await(barriers.full_k(keys.stage), keys.parity); };
  const auto await_values = [&] { await(barriers.full_v(values.stage), values.parity); };
  const auto free_keys = [&] {
    free_place(barriers.free_k(keys.stage));
    keys.advance();
  };
  const auto free_values = [&] {
    free_place(barriers.free_v(values.stage));
    values.advance();
  };
  if (group == GROUPS - 1) pass_turn(group);

  const int works = Work::count(heads, sequence);
  for (int round = 0; Work::index(round) < works; ++round) {
    const Work work(heads, sequence, round);
    const Queries& queries = work.queries;
    const int tiles = work.tiles;
    const int group_first = queries.first + group * 64;
    // Of the tiles, those of which some query of the group sees some key.
    const int mine = CAUSAL ? min(tiles, Work::tiles_before(group_first + 64)) : tiles;
    const int unmasked = CAUSAL ? min(sequence, group_first + 1) : sequence;  // keys that all queries see
    Running running;
    float keep[2];
    const auto weigh = [&](int tile) {
      if (tile * TILE_K + TILE_K > unmasked) Running::mask(scores[0], tile * TILE_K, queries.first + warp_row, sequence);
      running.weigh(scores[0], scale_log2, keep);
    };
    const auto pack_all = [&] {
#pragma unroll
      for (int step = 0; step < TILE_K / 16; ++step) pack_weights(weights[step], scores[0][2 * step], scores[0][2 * step + 1]);
    };
    clear(scores);
    clear(out);
    await(barriers.full_q(), round % 2);
    await_keys();
    score();
    wait_products<0>();
    settle(scores);
    free_keys();
    weigh(0);
    pack_all();
    for (int tile = 1; tile < mine; ++tile) {
      await_keys();
      await_turn(group);
      score();
      await_values();
      weighted();
      pass_turn(group);
      wait_products<1>();
      settle(scores);
      free_keys();
      weigh(tile);
      wait_products<0>();
      settle(out);
      hold(weights);
      free_values();
      rescale(out[0], keep);
      pack_all();
    }
    if (threadIdx.x % 32 == 0) arrive(barriers.free_q());
    await_values();
    await_turn(group);
    weighted();
    pass_turn(group);
    wait_products<0>();
    settle(out);
    hold(weights);
    free_values();
    for (int tile = mine; tile < tiles; ++tile) {  // what the other groups still need
      await_keys();
      free_keys();
      await_values();
      free_values();
      await_turn(group);
      pass_turn(group);
    }
    write_rows(out[0], running, queries, warp_row, y, sequence);
  }
  if (group == 0) await_turn(group);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k, const __grid_constant__ CUtensorMap v,
              T* __restrict__ y, int heads, int sequence, float scale_log2) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared);
  const Barriers barriers{shared_at + BARRIERS_AT};
  if (threadIdx.x == 0) barriers.make();
  if (CLUSTER == 1) __syncthreads();
  else sync_cluster();
  if (threadIdx.x < 128) {
    if (GROUPS > 1) give_registers<GROUPS == 2 ? 24 : 32>();
    if (threadIdx.x == 0) load_all(q, k, v, shared_at, barriers, heads, sequence);
    __syncwarp();
  } else {
    if (GROUPS > 1) take_registers<GROUPS == 2 ? 240 : 160>();
    attend(y, shared_at, barriers, heads, sequence, scale_log2);
  }
  if (CLUSTER > 1) sync_cluster();  // until then others may arrive here
}
