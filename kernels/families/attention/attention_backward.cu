// Gradients of softmax(q · kᵀ · scale) · v through wgmma, of [heads, sequence, DIM]: first a kernel
// whose blocks own keys, dv = pᵀ · dy and dk = dsᵀ · q, then one whose blocks own queries, dq = ds
// · k; p are the weights and ds = p ∘ (dy · vᵀ - delta) · scale. Nothing is added in memory, so
// that results do not depend on what runs when. Both kernels are one text: a block keeps its own
// rows of two tensors (keys and values, or queries and dy), and tiles of the other two stream by.
// One warp loads by tensor maps; in a group of four warps the weights go from accumulators straight
// to left operands.
namespace backward {
constexpr int PANELS = (UNITS + 7) / 8;  // of 64 columns
/// One of a tensor's tiles of `rows` rows.
DEVICE constexpr int bytes_of(int rows) { return PANELS * rows * 128; }

/// Of a query: the logarithm of its sum of weights, and the sum of y · dy along its row, times the
/// scale.
struct Statistics {
  float log_sum, delta;
};

/// What one of the two kernels does.
template <bool KEYS_>
struct Shape {
  static constexpr bool KEYS = KEYS_;
  static constexpr int GROUPS = 2;                     // of four warps
  static constexpr int TILE = KEYS ? K_TILE : Q_TILE;  // rows that stream by at once
  /// Buffers for the tensor that is needed first (queries, or keys), and for its partner (dy, or
  /// values).
  static constexpr int STAGES = KEYS ? K_STAGES : Q_STAGES,
                       PARTNER_STAGES = KEYS ? K_PARTNER_STAGES : Q_PARTNER_STAGES;
  /// A group for each gradient, where the registers of one cannot hold both.
  static constexpr bool ROLES = KEYS && K_ROLES;
  static constexpr int OWN = ROLES ? 64 : GROUPS * 64;  // rows of a block
  static constexpr int THREADS = (GROUPS + 1) * 128;
  /// Of the other rows a block's own `row` meets those from first_of(row) on, where FROM; and those
  /// up to last_of(row), where TO.
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

/// A block's own rows of one head, and what streams by.
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
  /// The first tile that rows from `row` on meet, and the one behind the last that rows before
  /// `row` do.
  DEVICE int begin_of(int row) const { return S::FROM ? max(0, S::first_of(row)) / S::TILE : 0; }
  DEVICE int end_of(int row) const {
    return ((S::TO ? min(other, S::last_of(row - 1) + 1) : other) + S::TILE - 1) / S::TILE;
  }
};

struct Tensors {
  const CUtensorMap *first, *second;
};

/// One thread's part: everything that is read, in the order in which it is needed.
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
  typename S::Stream place(shared_at + S::STREAM_AT, shared_at + S::STREAM_BARRIERS);
  typename S::Partner partner(shared_at + S::PARTNER_AT, shared_at + S::PARTNER_BARRIERS);
  const unsigned mine = shared_at + S::BARRIERS_AT;
  expect_bytes(mine, bytes_of(S::OWN));
  load(*own.first, shared_at, S::OWN, 64, work.first, work.head, mine);
  bool begun = false;
  for (int i = 0; i < work.other_heads; ++i) {
    const int head = work.other_head + i;
    for (int tile = work.begin; tile < work.end; ++tile) {
      const int row = tile * S::TILE;
      place.await_free();
      const unsigned full = place.full();
      const unsigned bytes = S::KEYS ? (min(S::TILE, sequence - row) + 1) / 2 * 16 : 0;
      expect_bytes(full, bytes_of(S::TILE) + bytes);
      load(*other.first, place.buffer(), S::TILE, S::TILE, row, head, full);
      if (S::KEYS)
        copy_bytes(shared_at + S::STATISTICS_AT + place.stage * S::TILE * 8,
                   statistics + (long long)head * ROWS + row, bytes, full);
      place.step();
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

/// Four warps with 64 rows. FIRST: they sum dv; SECOND: dk, or dq.
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
  typename S::Stream place{shared_at + S::STREAM_AT, shared_at + S::STREAM_BARRIERS};
  typename S::Partner partner{shared_at + S::PARTNER_AT, shared_at + S::PARTNER_BARRIERS};
  float weights[1][S::FRAGMENTS][4], slopes[1][S::FRAGMENTS][4];  // p; dy · vᵀ, and then ds
  float values[1][FIRST ? UNITS : 1][4], sums[1][SECOND ? UNITS : 1][4];
  unsigned packed_weights[FIRST ? S::TILE / 16 : 1][4], packed_slopes[S::TILE / 16][4];
  Statistics own[2];    // of a lane's two queries
  bool masked = false;  // the tile at hand

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
        start_output<S::TILE>(sums[0], packed_slopes, place.buffer());
        wait_products<1>();
      }
      if (FIRST && SECOND) hold(packed_weights);
      const auto used = place;
      const auto partner_used = partner;
      place.step();
      partner.step();
      if (SECOND) release(partner_used);
      if (tile + 1 == last_tile()) return finish_sums<0>(used, partner_used);
      start();
      finish_sums<SECOND ? 2 : 1>(used, partner_used);
    }
  }
  /// Until the sums over a tile are over; PENDING products of the next one are under way.
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
    place.await_full();
    release(place);
    place.step();
    partner.await_full();
    release(partner);
    partner.step();
  }
  /// The next tile's products, in the background.
  DEVICE void start() {
    place.await_full();
    start_scores<S::OWN, S::TILE>(weights[0], shared_at + row * 128, place.buffer());
    partner.await_full();
    if (SECOND)
      start_scores<S::OWN, S::TILE>(slopes[0], shared_at + bytes_of(S::OWN) + row * 128,
                                    partner.buffer());
  }
  /// use(fragment, element) for all of a lane.
  template <class Use>
  DEVICE static void each(const Use& use) {
    UNROLLED for (int i = 0; i < S::FRAGMENTS * 4; ++i) use(i / 4, i % 4);
  }
  /// Likewise, with the statistics of its query.
  template <class Use>
  DEVICE void visit(const Use& use) const {
    UNROLLED for (int j = 0; j < S::FRAGMENTS; ++j) {
      Statistics two[2];
      if (S::KEYS)
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(two[0].log_sum), "=f"(two[0].delta), "=f"(two[1].log_sum),
                       "=f"(two[1].delta)
                     : "r"(shared_at + S::STATISTICS_AT +
                           (place.stage * S::TILE + j * 8 + threadIdx.x % 4 * 2) * 8));
      UNROLLED for (int e = 0; e < 4; ++e) use(j, e, S::KEYS ? two[e % 2] : own[e / 2]);
    }
  }
  /// Scores into weights; those of queries or keys that do not exist or see each other are zero.
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
  /// dy · vᵀ into ds, with the scale: without it float16 would overflow where gradients do not.
  DEVICE void slope() {
    visit([&](int j, int e, const Statistics& query) {
      slopes[0][j][e] = weights[0][j][e] * fmaf(slopes[0][j][e], scale, -query.delta);
    });
    if (!masked) return;
    each([&](int j, int e) {
      // what a query that does not exist left there is no number
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
  // A sequence's last tile leaves some statistics as they are.
  for (int at = S::STATISTICS_AT + threadIdx.x * 16; at < S::BARRIERS_AT; at += S::THREADS * 16)
    asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(shared_at + at), "r"(0)
                 : "memory");
  show_to_tensor_cores();
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
