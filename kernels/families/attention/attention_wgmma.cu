// Attention forward on Hopper, y = softmax(q · kᵀ · scale) · v, for q, y of [heads, sequence, DIM]
// and the keys of attention_queries.cuh.
//
// A block has GROUPS warpgroups of 64 queries each and one more warpgroup whose first thread copies
// tiles by tensor maps. Keys and values stream through rings of STAGES buffers. For each tile of
// TILE_K keys a warpgroup computes
//
//     scores[64, TILE_K] = q · kᵀ             wgmma, both operands in shared memory
//     weights = 2^((scores - max) · scale)    online softmax, in registers
//     out[64, DIM] = out · keep + weights · v wgmma, left operand in registers
//
// where `keep` rescales earlier sums if the row's maximum has grown. Two overlaps hide the softmax:
//
// 1. Within a warpgroup, the products of tile t + 1 start before the output of tile t is finished:
//     tensor cores  | q·k(t+1) | w(t)·v(t) | q·k(t+2) | w(t+1)·v(t+1) |
//     registers                | softmax of t+1       | softmax of t+2
// 2. Between warpgroups, named barriers (await_turn, pass_turn) pass the tensor cores around, so
// that one warpgroup computes its softmax while the products of another run (as in
// FlashAttention-3).
//
// A persistent block goes on from one tile of queries to the next without draining the pipeline:
// the first scores of the next tile are computed beside the last output of this one (`begun`), and
// with QUERY_STAGES = 2 its queries were copied meanwhile. Even rounds go forwards over the tiles
// and odd ones backwards, because rows of a causal mask get shorter.
//
// Masks, windows, keys shared by several heads (grouped-query attention) and sequences of several
// lengths are constants (attention_queries.cuh). With STATISTICS the kernel stores, in place of y,
// the values that the gradients need (attention_backward.cu).
constexpr int GROUPS = TILE_Q / 64;
constexpr int THREADS = (GROUPS + 1) * 128;
constexpr int FRAGMENTS_K = TILE_K / 8;
constexpr int PANELS = (UNITS + PANEL - 1) / PANEL;
constexpr int Q_BYTES = tile_bytes<TILE_Q>();
constexpr int K_BYTES = tile_bytes<TILE_K>();
constexpr int KEYS_AT = QUERY_STAGES * Q_BYTES, VALUES_AT = KEYS_AT + STAGES * K_BYTES,
              BARRIERS_AT = VALUES_AT + STAGES * K_BYTES;
constexpr int KEY_BARRIERS = BARRIERS_AT, VALUE_BARRIERS = KEY_BARRIERS + STAGES * 16,
              QUERY_BARRIERS = VALUE_BARRIERS + STAGES * 16;
/// Bytes from the barriers of one group's queries to the next group's.
constexpr int GROUP_BARRIERS = QUERY_STAGES * 16;
typedef Ring<STAGES, K_BYTES> Tiles;  // for keys, or for values
typedef Ring<QUERY_STAGES, Q_BYTES> QueryTiles;

/// A block's work: one tile of queries after another.
struct Work {
  bool exists = true;
  Queries queries;
  int begin = 0, end = 0;  // tiles of keys, for any of the groups

  DEVICE Work(const Task& task) { advance(task); }
  DEVICE void advance(const Task& task) {
    ++round;
    // Every other round backwards, as rows of a causal mask get shorter.
    const int index = round * gridDim.x +
                      (CAUSAL && round % 2 == 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
    exists = index < task.tiles() * task.heads;
    if (!exists) return;
    queries = Queries(index, task);
    begin = queries.begin(), end = queries.end();
  }

 private:
  int round = -1;
};

/// The copying thread: it copies everything in the order in which it is needed; with two buffers
/// for queries the next tile's queries are copied during this tile's keys.
DEVICE void load_all(const CUtensorMap& q, const CUtensorMap& k, const CUtensorMap& v,
                     unsigned shared_at, const Task& task) {
  Tiles keys(shared_at + KEYS_AT, shared_at + KEY_BARRIERS),
      values(shared_at + VALUES_AT, shared_at + VALUE_BARRIERS);
  QueryTiles buffer(shared_at, shared_at + QUERY_BARRIERS);
  const auto load_queries = [&](const Work& work) {
    UNROLLED for (int group = 0; group < GROUPS; ++group) {
      if (!work.exists) return;
      const unsigned full = buffer.full() + group * GROUP_BARRIERS;
      await(buffer.free() + group * GROUP_BARRIERS, buffer.parity ^ 1);
      expect_bytes(full, Q_BYTES / GROUPS);
      UNROLLED for (int panel = 0; panel < PANELS; ++panel) {
        copy_box(buffer.buffer() + (panel * TILE_Q + group * 64) * 128, q, panel * 64,
                 work.queries.first + group * 64, work.queries.head, full);
      }
    }
    buffer.step();
  };
  Work next(task);
  if (QUERY_STAGES > 1) load_queries(next);
  while (next.exists) {
    const Work work = next;
    next.advance(task);
    const auto load = [&](Tiles& tiles, const CUtensorMap& map, int tile) {
      if (tile >= work.end) return;
      tiles.await_free();
      expect_bytes(tiles.full(), K_BYTES);
      UNROLLED for (int panel = 0; panel < PANELS; ++panel) {
        copy_box(tiles.buffer() + panel * TILE_K * 128, map, panel * 64, tile * TILE_K,
                 work.queries.head / SHARING, tiles.full());
      }
      tiles.step();
    };
    load(keys, k, work.begin);
    if (QUERY_STAGES == 1) load_queries(work);
    for (int tile = work.begin; tile < work.end; ++tile) {
      load(keys, k, tile + 1);
      load(values, v, tile);
      // The groups have finished the previous tile of queries.
      if (QUERY_STAGES > 1 && tile == min(work.begin + 1, work.end - 1)) load_queries(next);
    }
  }
}

/// Starts scores[64, TILE] = own · otherᵀ; OWN and TILE are the rows of the tiles.
template <int OWN, int TILE>
DEVICE void start_scores(float (&scores)[TILE / 8][4], unsigned own, unsigned other) {
  const unsigned long long a = operand(own), b = operand(other);
  start_products();
  UNROLLED for (int step = 0; step < UNITS / 2; ++step) {
    const unsigned long long a_step = further(a, step / 4 * (OWN * 128) + step % 4 * 32);
    const unsigned long long b_step = further(b, step / 4 * (TILE * 128) + step % 4 * 32);
    if (step == 0)
      multiply<false>(scores, a_step, b_step);
    else
      multiply(scores, a_step, b_step);
  }
  commit_products();
}

/// Starts out[64, DIM] += weights · other.
template <int TILE>
DEVICE void start_output(float (&out)[UNITS][4], const unsigned (&weights)[TILE / 16][4],
                         unsigned other) {
  const unsigned long long b = operand(other, TILE * 128);
  start_products();
  UNROLLED for (int step = 0; step < TILE / 16; ++step)
      multiply(out, weights[step], further(b, step * 2048));
  commit_products();
}
/// Weights as left operands.
template <int STEPS>
DEVICE void pack_all(unsigned (&packed)[STEPS][4], const float (&weights)[STEPS * 2][4]) {
  UNROLLED for (int step = 0; step < STEPS; ++step)
      pack_weights(packed[step], weights[2 * step], weights[2 * step + 1]);
}

/// The groups' order at the tensor cores: each waits for the one before it.
DEVICE void await_turn(int group) {
  if (TURNS) asm volatile("bar.sync %0, 256;" ::"r"(group + 1) : "memory");
}
DEVICE void pass_turn(int group) {
  if (TURNS) asm volatile("bar.arrive %0, 256;" ::"r"((group + 1) % GROUPS + 1) : "memory");
}

#if STATISTICS
/// The values of a query that the gradients need: the base-2 logarithm of its sum of weights, and
/// the sum of y · dy along its row, times the scale.
struct Result {
  const T* dy;
  float2* statistics;

  DEVICE void take(const float (&out)[UNITS][4], const Running& running, float scale_log2,
                   const Queries& queries, int row, int sequence) const {
    const int lane = threadIdx.x % 32;
    UNROLLED for (int half = 0; half < 2; ++half) {
      const T* from = dy + queries.base + (long long)(row + half * 8) * DIM;
      float delta = 0;
      UNROLLED for (int d = 0; d < UNITS; ++d) {
        if (row + half * 8 >= sequence || d * 8 >= DIM) continue;
        const unsigned pair = *(const unsigned*)(from + d * 8 + lane % 4 * 2);
        delta += (float)((const T*)&pair)[0] * out[d][half * 2] +
                 (float)((const T*)&pair)[1] * out[d][half * 2 + 1];
      }
      delta += __shfl_xor_sync(0xffffffffu, delta, 1);
      delta += __shfl_xor_sync(0xffffffffu, delta, 2);
      const float inverse = running.inverse(half);
      if (lane % 4 == 0 && row + half * 8 < sequence)
        statistics[(long long)queries.head * ROWS + row + half * 8] = make_float2(
            fmaf(running.top[half], scale_log2, -__log2f(inverse)),
            delta * inverse * (scale_log2 * 0.6931471805599453f));
    }
  }
};
#else
struct Result {
  T* y;

  DEVICE void take(const float (&out)[UNITS][4], const Running& running, float,
                   const Queries& queries, int row, int sequence) const {
    const float inverses[2] = {running.inverse(0), running.inverse(1)};
    write_rows(out, inverses, row, y + queries.base, sequence);
  }
};
#endif

/// A warpgroup with 64 queries. The first tile of keys of a tile of queries may already have been
/// computed beside the last one of the tile of queries before.
struct Group {
  Result result;
  unsigned shared_at;
  Task task;
  float scale_log2;
  int group = threadIdx.x / 128 - 1, warp_row = threadIdx.x / 32 * 16 - 64;
  Tiles keys{shared_at + KEYS_AT, shared_at + KEY_BARRIERS},
      values{shared_at + VALUES_AT, shared_at + VALUE_BARRIERS};
  QueryTiles buffer{shared_at, shared_at + QUERY_BARRIERS + group* GROUP_BARRIERS};
  float scores[1][FRAGMENTS_K][4], out[1][UNITS][4];
  unsigned weights[TILE_K / 16][4];
  Added<FRAGMENTS_K> added;
  float keep[2];

  DEVICE void run() {
    if (group == GROUPS - 1) pass_turn(group);
    clear(scores);
    bool begun = false;
    Running running;
    for (Work work(task); work.exists;) {
      clear(out);
      if (!begun) running = begin(work);
      pack_all(weights, scores[0]);
      const int mine = seen(work);
      for (int tile = work.begin + 1; tile < mine; ++tile) {
        start_both(work, tile);
        weigh(running, work, tile);
        finish_output();
        rescale(out[0], keep);
        pack_all(weights, scores[0]);
      }
      Work next = work;
      next.advance(task);
      begun = next.exists && mine == work.end;
      Running fresh;
      if (begun) {
        buffer.await_full();
        start_both(next, next.begin);
        weigh(fresh, next, next.begin);
      } else {
        await_turn(group);
        add_weighted();
      }
      finish_output();
      for (int tile = mine; tile < work.end; ++tile) pass();
      result.take(out[0], running, scale_log2, work.queries,
                  work.queries.first + warp_row + threadIdx.x % 32 / 4, task.sequence);
      running = fresh;
      work = next;
    }
    if (group == 0) await_turn(group);
  }

 private:
  DEVICE int first(const Work& work) const { return work.queries.first + group * 64; }
  /// One past the last tile of keys of which some query of the group sees some key.
  DEVICE int seen(const Work& work) const { return work.queries.end(first(work) + 64); }
  /// Loads the mask ahead of the scores that it is added to.
  DEVICE void read_mask(const Work& work, int tile) {
    if (ADDS) added.load(task, work.queries.head, tile * TILE_K, work.queries.first + warp_row);
  }

  /// This warp no longer reads the buffer.
  template <class Buffers>
  static DEVICE void pass_on(Buffers& buffers) {
    buffers.release();
    buffers.step();
  }
  DEVICE void score() {
    start_scores<TILE_Q, TILE_K>(scores[0], buffer.buffer() + group * 64 * 128, keys.buffer());
  }
  DEVICE void add_weighted() {
    values.await_full();
    start_output<TILE_K>(out[0], weights, values.buffer());
    pass_turn(group);
  }
  DEVICE void finish_output() {
    wait_products<0>();
    settle(out);
    hold(weights);
    pass_on(values);
  }
  /// Turns scores, whose products have finished, into weights.
  DEVICE void weigh(Running& running, const Work& work, int tile) {
    settle(scores);
    pass_on(keys);
    if (tile + 1 == seen(work)) pass_on(buffer);
    if (ADDS) added.add_to(scores[0], scale_log2);
    if (work.queries.partial(tile, first(work), 64))
      Running::mask(scores[0], tile * TILE_K, work.queries.first + warp_row, work.queries);
    running.weigh(scores[0], scale_log2, keep);
    running.hold();
  }
  DEVICE Running begin(const Work& work) {
    buffer.await_full();
    keys.await_full();
    score();
    read_mask(work, work.begin);
    wait_products<0>();
    Running running;
    weigh(running, work, work.begin);
    return running;
  }
  /// Starts a tile's scores and the output of the tile before; returns when the scores are there.
  DEVICE void start_both(const Work& work, int tile) {
    read_mask(work, tile);
    keys.await_full();
    await_turn(group);
    score();
    add_weighted();
    wait_products<1>();
  }
  /// A tile that only other groups need.
  DEVICE void pass() {
    keys.await_full();
    pass_on(keys);
    values.await_full();
    pass_on(values);
    await_turn(group);
    pass_turn(group);
  }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
              const __grid_constant__ CUtensorMap v, const void* __restrict__ given,
#if STATISTICS
              const T* __restrict__ dy, float2* __restrict__ statistics, int heads, int sequence,
              float scale_log2) {
  const Result result{dy, statistics};
#else
              T* __restrict__ y, int heads, int sequence, float scale_log2) {
  const Result result{y};
#endif
  await_launch_before();
  const Task task{heads, sequence, given};
  extern __shared__ __align__(1024) unsigned char shared[];
  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared);
  if (threadIdx.x == 0) {
    Ring<2 * STAGES, K_BYTES>(shared_at + KEYS_AT, shared_at + BARRIERS_AT).make(GROUPS * 4);
    Ring<GROUPS * QUERY_STAGES, Q_BYTES>(shared_at, shared_at + QUERY_BARRIERS).make(4);
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    if (GROUPS > 1) give_registers<GROUPS == 2 ? 40 : 32>();
    if (threadIdx.x == 0) load_all(q, k, v, shared_at, task);
    __syncwarp();
  } else {
    if (GROUPS > 1) take_registers<GROUPS == 2 ? 232 : 160>();
    Group{result, shared_at, task, scale_log2}.run();
  }
}
