// Attention backward on Hopper: gradients of y = softmax(q · kᵀ · scale) · v, for tensors of
// [heads, sequence, DIM]. With the weights p = softmax(…) and ds = p ∘ (dy · vᵀ - delta) · scale,
// where delta is the sum of y · dy along a row:
//
//     dv = pᵀ · dy      dk = dsᵀ · q      dq = ds · k
//
// Three kernels run in this order:
// 1. `attention` (attention_wgmma.cu with STATISTICS) computes, per query, the logarithm of its sum
// of weights and delta.
// 2. `backward_keys`: a block owns 128 (or 64) keys, keeps k and v in shared memory, and q and dy
// of all queries stream by. It computes sᵀ = k · qᵀ, pᵀ, dpᵀ = v · dyᵀ, dsᵀ and accumulates dv and
// dk in registers.
// 3. `backward_queries`: a block owns 128 queries, keeps q and dy, and k and v stream by. It
// computes s, p, ds again and accumulates dq.
//
// p is computed twice (seven products instead of five), but no result is added up in memory, so
// that gradients do not depend on timing. Heads that share keys add up inside a block
// (other_heads).
//
// Kernels 2 and 3 are instances of one text: Shape says which tensors are a block's own (first and
// second), and Work which rows of the other two it meets under causal and window masks. One thread
// copies tiles by tensor maps; a warpgroup takes p and ds from its accumulators directly as left
// operands of the next product:
//
//     products    | s(t) | dp(t) |  p(t)·dy  | s(t+1) | dp(t+1) | ds(t)·q | …
//     registers          | p(t)  | ds(t)                                    ("slope" = ds)
//
// ROLES: for DIM > 128 the sums of dv and dk exceed the registers of a warpgroup, so that one
// warpgroup accumulates dv and the other dk.
namespace backward {
constexpr int PANELS = (UNITS + 7) / 8;  // of 64 columns
/// Bytes of a tile of `rows` rows.
DEVICE constexpr int bytes_of(int rows) { return PANELS * rows * 128; }

/// The statistics of a query: the logarithm of its sum of weights, and the sum of y · dy along its
/// row, times the scale.
struct Statistics {
  float log_sum, delta;
};

/// The parameters of one of the two kernels.
template <bool KEYS_>
struct Shape {
  static constexpr bool KEYS = KEYS_;
  static constexpr int GROUPS = 2;                     // of four warps
  static constexpr int TILE = KEYS ? K_TILE : Q_TILE;  // rows of a streaming tile
  /// Buffers for the streaming tensor that is needed first (queries, or keys), and for its partner
  /// (dy, or values).
  static constexpr int STAGES = KEYS ? K_STAGES : Q_STAGES,
                       PARTNER_STAGES = KEYS ? K_PARTNER_STAGES : Q_PARTNER_STAGES;
  /// One warpgroup per gradient, where the registers of one cannot hold both.
  static constexpr bool ROLES = KEYS && K_ROLES;
  static constexpr int OWN = ROLES ? 64 : GROUPS * 64;  // rows of a block
  static constexpr int THREADS = (GROUPS + 1) * 128;
  /// A block's own `row` meets the other rows from first_of(row) on, if FROM, and up to
  /// last_of(row), if TO.
  static constexpr bool FROM = KEYS ? CAUSAL : WINDOW > 0, TO = KEYS ? WINDOW > 0 : CAUSAL;
  static DEVICE int first_of(int row) { return KEYS ? row - AHEAD : row + AHEAD - WINDOW + 1; }
  static DEVICE int last_of(int row) { return KEYS ? row - AHEAD + WINDOW - 1 : row + AHEAD; }
  static constexpr int FRAGMENTS = TILE / 8;
  static constexpr int STREAM_AT = 2 * bytes_of(OWN),
                       PARTNER_AT = STREAM_AT + STAGES * bytes_of(TILE);
  static constexpr int STATISTICS_AT = PARTNER_AT + PARTNER_STAGES * bytes_of(TILE);
  static constexpr int BARRIERS_AT = STATISTICS_AT + (KEYS ? STAGES * TILE * 8 : 0);
  /// Barriers of the block's own two tensors, then of the buffers.
  static constexpr int STREAM_BARRIERS = BARRIERS_AT + 16,
                       PARTNER_BARRIERS = STREAM_BARRIERS + STAGES * 16;
  typedef Ring<STAGES, bytes_of(TILE)> Stream;
  typedef Ring<PARTNER_STAGES, bytes_of(TILE)> Partner;
};

/// A block's own rows of one head, and the range of rows that stream by.
template <class S>
struct Work {
  int head, first;              // of the block's own tensors
  int own, other;               // rows of a head
  int begin, end;               // tiles of the other two, one at least
  int other_head, other_heads;  // first of them, and how many

  DEVICE explicit Work(int sequence) {
    own = S::KEYS ? sequence + AHEAD : sequence;
    other = S::KEYS ? sequence : sequence + AHEAD;
    const int tiles = (own + S::OWN - 1) / S::OWN;
    const int tile = blockIdx.x % tiles;
    head = blockIdx.x / tiles;
    first = (S::KEYS ? tile : tiles - 1 - tile) * S::OWN;  // under a causal mask the longest first
    begin = begin_of(first);
    end = max(end_of(first + S::OWN), begin + 1);
    other_heads = S::KEYS ? SHARING : 1;
    other_head = S::KEYS ? head * SHARING : head / SHARING;
  }
  /// The first tile that rows from `row` on meet, and one past the last tile that rows before `row`
  /// meet.
  DEVICE int begin_of(int row) const { return S::FROM ? max(0, S::first_of(row)) / S::TILE : 0; }
  DEVICE int end_of(int row) const {
    return ((S::TO ? min(other, S::last_of(row - 1) + 1) : other) + S::TILE - 1) / S::TILE;
  }
};

struct Tensors {
  const CUtensorMap *first, *second;
};

/// The copying thread: it copies everything in the order in which it is needed.
template <class S>
DEVICE void load_all(Tensors own, Tensors other, const Statistics* statistics, unsigned shared_at,
                     int sequence) {
  const Work<S> work(sequence);
  const auto load = [&](const CUtensorMap& map, unsigned to, int rows, int box, int row, int head,
                        unsigned barrier) {
    UNROLLED for (int panel = 0; panel < PANELS; ++panel) {
      for (int at = 0; at < rows; at += box)
        copy_box(to + (panel * rows + at) * 128, map, panel * 64, row + at, head, barrier);
    }
  };
  typename S::Stream stream(shared_at + S::STREAM_AT, shared_at + S::STREAM_BARRIERS);
  typename S::Partner partner(shared_at + S::PARTNER_AT, shared_at + S::PARTNER_BARRIERS);
  const unsigned mine = shared_at + S::BARRIERS_AT;
  expect_bytes(mine, bytes_of(S::OWN));
  load(*own.first, shared_at, S::OWN, 64, work.first, work.head, mine);
  bool begun = false;
  for (int i = 0; i < work.other_heads; ++i) {
    const int head = work.other_head + i;
    for (int tile = work.begin; tile < work.end; ++tile) {
      const int row = tile * S::TILE;
      stream.await_free();
      const unsigned full = stream.full();
      const unsigned bytes = S::KEYS ? (min(S::TILE, sequence - row) + 1) / 2 * 16 : 0;
      expect_bytes(full, bytes_of(S::TILE) + bytes);
      load(*other.first, stream.buffer(), S::TILE, S::TILE, row, head, full);
      if (S::KEYS)
        copy_bytes(shared_at + S::STATISTICS_AT + stream.stage * S::TILE * 8,
                   statistics + (long long)head * ROWS + row, bytes, full);
      stream.step();
      if (!begun) {
        expect_bytes(mine + 8, bytes_of(S::OWN));
        load(*own.second, shared_at + bytes_of(S::OWN), S::OWN, 64, work.first, work.head,
             mine + 8);
        begun = true;
      }
      partner.await_free();
      expect_bytes(partner.full(), bytes_of(S::TILE));
      load(*other.second, partner.buffer(), S::TILE, S::TILE, row, head, partner.full());
      partner.step();
    }
  }
}

/// A warpgroup with 64 rows. FIRST: it accumulates dv; SECOND: dk, or dq.
template <class S, bool FIRST, bool SECOND>
struct Group {
  unsigned shared_at;
  int sequence;
  float scale;
  const Statistics* statistics;
  T *first_result, *second_result;  // of what is summed, if it is
  float scale_log2 = scale * 1.4426950408889634f;
  Work<S> work{sequence};
  int row = S::ROLES ? 0 : threadIdx.x / 128 * 64 - 64;  // of the block's own, the group's first
  typename S::Stream stream{shared_at + S::STREAM_AT, shared_at + S::STREAM_BARRIERS};
  typename S::Partner partner{shared_at + S::PARTNER_AT, shared_at + S::PARTNER_BARRIERS};
  float weights[1][S::FRAGMENTS][4], slopes[1][S::FRAGMENTS][4];  // p; dy · vᵀ, and then ds
  float values[1][FIRST ? UNITS : 1][4], sums[1][SECOND ? UNITS : 1][4];
  unsigned packed_weights[FIRST ? S::TILE / 16 : 1][4], packed_slopes[S::TILE / 16][4];
  Statistics own[2];    // the statistics of a lane's two queries
  bool masked = false;  // the current tile has masked elements

  /// The first of the lane's own two rows.
  DEVICE int lane_row() const {
    return work.first + row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
  }
  DEVICE int first_tile() const {
    return S::FROM ? min(work.end, work.begin_of(work.first + row)) : work.begin;
  }
  DEVICE int last_tile() const {
    return S::TO ? min(work.end, max(first_tile(), work.end_of(work.first + row + 64))) : work.end;
  }

  DEVICE void run() {
    UNROLLED for (int half = 0; !S::KEYS && half < 2; ++half) own[half] =
        statistics[(long long)work.head * ROWS + min(lane_row() + half * 8, sequence - 1)];
    clear(weights);
    clear(slopes);
    clear(values);
    clear(sums);
    settle(values);  // or they are cleared while products run
    settle(sums);
    await(shared_at + S::BARRIERS_AT, 0);
    await(shared_at + S::BARRIERS_AT + 8, 0);
#pragma unroll 1
    for (int i = 0; i < work.other_heads; ++i) {
      for (int tile = work.begin; tile < first_tile(); ++tile) pass();
      if (first_tile() < last_tile()) take_tiles();
      for (int tile = last_tile(); tile < work.end; ++tile) pass();
    }
    const float factors[2] = {1, 1};
    const long long base = (long long)work.head * work.own * DIM;
    if constexpr (FIRST) write_rows(values[0], factors, lane_row(), first_result + base, work.own);
    if constexpr (SECOND) write_rows(sums[0], factors, lane_row(), second_result + base, work.own);
  }

 private:
  /// All tiles of one head that some row of the group sees.
  DEVICE void take_tiles() {
    start();
#pragma unroll 1
    for (int tile = first_tile();; ++tile) {
      wait_products<SECOND ? 1 : 0>();
      settle(weights);
      weigh(tile);
      if constexpr (FIRST) {
        pack_all(packed_weights, weights[0]);
        start_output<S::TILE>(values[0], packed_weights, partner.buffer());
      }
      if constexpr (SECOND) {
        wait_products<FIRST ? 1 : 0>();
        settle(slopes);
        slope();
        pack_all(packed_slopes, slopes[0]);
        start_output<S::TILE>(sums[0], packed_slopes, stream.buffer());
        wait_products<1>();
      }
      if (FIRST && SECOND) hold(packed_weights);
      const auto used = stream;
      const auto partner_used = partner;
      stream.step();
      partner.step();
      if (SECOND) release(partner_used);
      if (tile + 1 == last_tile()) return finish_sums<0>(used, partner_used);
      start();
      finish_sums<SECOND ? 2 : 1>(used, partner_used);
    }
  }
  /// Waits until the sums over a tile are finished; PENDING products of the next one may still run.
  template <int PENDING>
  DEVICE void finish_sums(const typename S::Stream& used, const typename S::Partner& partner_used) {
    wait_products<PENDING>();
    settle(sums);
    settle(values);
    hold(packed_slopes);
    if (!SECOND) hold(packed_weights);
    release(used);
    if (!SECOND) release(partner_used);
  }
  /// This warp no longer reads the buffer.
  template <class Buffers>
  static DEVICE void release(const Buffers& used) {
    used.release();
    __syncwarp();
  }
  /// A tile that only other groups need.
  DEVICE void pass() {
    stream.await_full();
    release(stream);
    stream.step();
    partner.await_full();
    release(partner);
    partner.step();
  }
  /// The next tile's products, in the background.
  DEVICE void start() {
    stream.await_full();
    start_scores<S::OWN, S::TILE>(weights[0], shared_at + row * 128, stream.buffer());
    partner.await_full();
    if (SECOND)
      start_scores<S::OWN, S::TILE>(slopes[0], shared_at + bytes_of(S::OWN) + row * 128,
                                    partner.buffer());
  }
  /// Calls use(fragment, element) for all elements of a lane.
  template <class Use>
  DEVICE static void each(const Use& use) {
    UNROLLED for (int i = 0; i < S::FRAGMENTS * 4; ++i) use(i / 4, i % 4);
  }
  /// The same, with the statistics of the element's query.
  template <class Use>
  DEVICE void visit(const Use& use) const {
    UNROLLED for (int j = 0; j < S::FRAGMENTS; ++j) {
      Statistics two[2];
      if (S::KEYS)
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(two[0].log_sum), "=f"(two[0].delta), "=f"(two[1].log_sum),
                       "=f"(two[1].delta)
                     : "r"(shared_at + S::STATISTICS_AT +
                           (stream.stage * S::TILE + j * 8 + threadIdx.x % 4 * 2) * 8));
      UNROLLED for (int e = 0; e < 4; ++e) use(j, e, S::KEYS ? two[e % 2] : own[e / 2]);
    }
  }
  /// Turns scores into weights; those of rows that do not exist or do not see each other become
  /// zero.
  DEVICE void weigh(int tile) {
    const int other = tile * S::TILE, own_first = work.first + row;
    const bool bounded = (S::FROM && other < S::first_of(own_first + 63)) ||
                         (S::TO && other + S::TILE - 1 > S::last_of(own_first));
    visit([&](int j, int e, const Statistics& query) {
      weights[0][j][e] = power_of_two(fmaf(weights[0][j][e], scale_log2, -query.log_sum));
    });
    masked = bounded || other + S::TILE > work.other;
    if (!masked) return;
    each([&](int j, int e) {
      const int there = other + j * 8 + threadIdx.x % 4 * 2 + e % 2, here = lane_row() + e / 2 * 8;
      const bool seen = there < work.other && (!S::FROM || there >= S::first_of(here)) &&
                        (!S::TO || there <= S::last_of(here));
      if (!seen) weights[0][j][e] = 0;
    });
  }
  /// Turns dy · vᵀ into ds, which includes the scale: without it float16 would overflow where
  /// gradients do not.
  DEVICE void slope() {
    visit([&](int j, int e, const Statistics& query) {
      slopes[0][j][e] = weights[0][j][e] * fmaf(slopes[0][j][e], scale, -query.delta);
    });
    if (!masked) return;
    each([&](int j, int e) {
      // Statistics of a query that does not exist may be NaN.
      if (weights[0][j][e] == 0) slopes[0][j][e] = 0;
    });
  }
};

/// A block's work: its first warps load, the others `consume`.
template <class S, class Consume>
DEVICE void run(Tensors own, Tensors other, const Statistics* statistics, int sequence,
                const Consume& consume) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared);
  if (threadIdx.x == 0) {
    make_barrier(shared_at + S::BARRIERS_AT, 1);
    make_barrier(shared_at + S::BARRIERS_AT + 8, 1);
    Ring<S::STAGES + S::PARTNER_STAGES, bytes_of(S::TILE)>(shared_at + S::STREAM_AT,
                                                           shared_at + S::STREAM_BARRIERS)
        .make(S::GROUPS * 4);
  }
  // The last tile of a sequence does not fill all statistics: clear them.
  for (int at = S::STATISTICS_AT + threadIdx.x * 16; at < S::BARRIERS_AT; at += S::THREADS * 16)
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(shared_at + at), "r"(0)
                 : "memory");
  fence_async_proxy();
  __syncthreads();
  if (threadIdx.x < 128) {
    give_registers<24>();
    if (threadIdx.x == 0) load_all<S>(own, other, statistics, shared_at, sequence);
    __syncwarp();
  } else {
    take_registers<240>();
    consume(shared_at);
  }
}
}  // namespace backward

extern "C" __global__ void __launch_bounds__(backward::Shape<true>::THREADS, 1)
    backward_keys(const __grid_constant__ CUtensorMap k, const __grid_constant__ CUtensorMap v,
                  const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap dy,
                  const backward::Statistics* __restrict__ statistics, T* __restrict__ dk,
                  T* __restrict__ dv, int sequence, float scale) {
  using S = backward::Shape<true>;
  backward::run<S>({&k, &v}, {&q, &dy}, statistics, sequence, [&](unsigned shared_at) {
    if (!S::ROLES || threadIdx.x < 256)
      backward::Group<S, true, !S::ROLES>{shared_at, sequence, scale, statistics, dv, dk}.run();
    else
      backward::Group<S, !S::ROLES, true>{shared_at, sequence, scale, statistics, dv, dk}.run();
  });
}

extern "C" __global__ void __launch_bounds__(backward::Shape<false>::THREADS, 1)
    backward_queries(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap dy,
                     const __grid_constant__ CUtensorMap k, const __grid_constant__ CUtensorMap v,
                     const backward::Statistics* __restrict__ statistics, T* __restrict__ dq,
                     int sequence, float scale) {
  using S = backward::Shape<false>;
  backward::run<S>({&q, &dy}, {&k, &v}, statistics, sequence, [&](unsigned shared_at) {
    backward::Group<S, false, true>{shared_at, sequence, scale, statistics, nullptr, dq}.run();
  });
}
