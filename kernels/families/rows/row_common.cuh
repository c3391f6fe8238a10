// Shared by the row kernels. A row of COLS elements belongs to THREADS_PER_ROW threads of each of
// PARTS blocks; a block serves ROWS_PER_BLOCK rows at once. The blocks of a cluster exchange their
// sums through distributed shared memory; those of a split row through a workspace, between two
// launches. With PREFETCH the next rows are copied meanwhile; with KEEP values per column stay in
// registers. Memory is seen as vectors of VEC elements at multiples of VEC. Where VEC does not
// divide COLS, rows begin and end inside of vectors; those vectors are moved element by element.
constexpr int PARTS = CLUSTER * SPLIT;    // blocks that share a row
constexpr bool PEELED = COLS % VEC != 0;  // rows begin at any element
// elements of the vectors that a row touches, at most
constexpr int WINDOW = COLS + (PEELED ? VEC - 1 : 0);
constexpr int PART = ((WINDOW + VEC - 1) / VEC + PARTS - 1) / PARTS * VEC;
constexpr int CHUNKS = (PART + THREADS_PER_ROW * VEC - 1) / (THREADS_PER_ROW * VEC);
constexpr bool EVEN = !PEELED && PART * PARTS == COLS;  // all parts are equally long
// True if no thread reads beyond its part.
constexpr bool EXACT = EVEN && CHUNKS * THREADS_PER_ROW * VEC == PART;
// Arrays in registers need constant indices, hence full unrolling.
constexpr int PASS_UNROLL = STORAGE == REGISTERS ? 1024 : UNROLL;
constexpr int WRITE_UNROLL = KEEP ? 1024 : PASS_UNROLL;
// Number of vectors whose sums are added before they join a thread's running sum. Where one element
// outweighs all others, partial sums err in one direction; narrow vectors in float32 would err more
// than a plain kernel may. 16-bit results do not show it.
constexpr int SPAN = sizeof(T) < 4 ? 16 : VEC < 4 ? 4 : 8;
constexpr bool DEFER = PREFETCH == 2;  // rows are written after the next ones have been measured
// Buffers for rows in shared memory: one to keep the rows, one to receive the next rows, and one
// for the previous rows, which DEFER writes while the blocks of the cluster exchange their partial
// results.
constexpr int STAGES = (STORAGE == SHARED ? 1 : 0) + (PREFETCH ? 1 : 0) + (DEFER ? 1 : 0);

// Dynamic shared memory. Each part of it belongs to a single thread, so that no barrier is needed:
// vector p of thread i in an area is at index p * BLOCK + i.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

#define MINUS_INFINITY __int_as_float(0xff800000)
#define PART_INDEX ((int)(blockIdx.x % PARTS))
#define FIRST_GROUP \
  ((long long)(blockIdx.x / PARTS) * ROWS_PER_BLOCK)  // first of the rows that a block begins with
#define GROUP_STEP ((long long)(gridDim.x / PARTS) * ROWS_PER_BLOCK)
#define FOR_EACH_GROUP(group) for (long long group = FIRST_GROUP; group < rows; group += GROUP_STEP)

typedef Vector<T> Elements;

/// The position of a thread in its block, and which half of the memory for reductions is next:
/// because the halves alternate, one barrier per reduction is enough.
struct Team {
  int t = threadIdx.x % THREADS_PER_ROW;  // thread of the row
  int r = threadIdx.x / THREADS_PER_ROW;  // row of the block
  int slot = 0;
  unsigned sent = 0, received = 0;  // exchanges with the cluster so far
};

/// Threads beyond the last row repeat the group's first, so that barriers meet, and store nothing.
DEVICE bool active(long long group, const Team& team, long long rows) {
  return ROWS_PER_BLOCK == 1 || group + team.r < rows;
}
DEVICE long long row_of(long long group, const Team& team, long long rows) {
  return active(group, team, rows) ? group + team.r : group;
}

/// The elements of one row that belong to one thread: its vector c begins `at(c)` elements behind
/// `base`, where the block's part begins.
struct Lane {
  long long row;
  int t;           // among the threads of the row
  long long base;  // a multiple of VEC
  int first, end;  // the row's elements, counted from base

  DEVICE Lane(long long row, const Team& team) : row(row), t(team.t) {
    const long long start = row * COLS;
    const int skip = PEELED ? (int)(start & (VEC - 1)) : 0;
    const int offset = PART_INDEX * PART;
    base = start - skip + offset;
    first = skip - offset;
    end = EVEN ? PART : min(PART, COLS + first);
  }
  DEVICE int at(int c) const { return (c * THREADS_PER_ROW + t) * VEC; }
  /// True if vector c holds an element of the row.
  DEVICE bool has(int c) const { return EXACT || at(c) < end; }
  /// True if all its elements belong to the row. Only the first and the last chunk can be partial,
  /// which unrolled loops know at compile time.
  DEVICE bool whole(int c) const {
    const bool edge = c == 0 || (PARTS - 1) * PART + (c + 1) * THREADS_PER_ROW * VEC > COLS;
    return !PEELED || !edge || (at(c) >= first && at(c) + VEC <= end);
  }
  DEVICE bool has(int c, int e) const {
    return whole(c) || (at(c) + e >= first && at(c) + e < end);
  }
  /// The number of elements of the row in the block's part.
  DEVICE int count() const { return PARTS == 1 ? COLS : max(0, end - max(0, first)); }
  /// Calls use(c) for every vector, or every STEP-th, that holds elements of the row.
  template <int AT_ONCE, int STEP = 1, class Use>
  DEVICE void each(const Use& use, int from = 0, int to = CHUNKS) const {
#pragma unroll AT_ONCE
    for (int c = from; c < to; c += STEP) {
      if (has(c)) use(c);
    }
  }
};

/// Vector c of a matrix; NEUTRAL replaces elements that do not belong to the row.
DEVICE Elements fetch(const T* matrix, const Lane& lane, int c) {
  const T* from = matrix + lane.base + lane.at(c);
  Elements v;
  if (lane.whole(c)) {
    read(v, from);
    return v;
  }
  UNROLLED for (int e = 0; e < VEC; ++e) {
    if (lane.has(c, e))
      v.element[e] = from[e];
    else
      store(v.element[e], NEUTRAL);
  }
  return v;
}

/// Rounds to T and stores the elements that belong to the row.
DEVICE void put(T* matrix, const Lane& lane, int c, const float (&values)[VEC]) {
  Elements v;
  UNROLLED for (int e = 0; e < VEC; ++e) store(v.element[e], values[e]);
  T* to = matrix + lane.base + lane.at(c);
  if (lane.whole(c)) {
    // Without this the compiler may store the pieces of a word one by one.
    UNROLLED for (int i = 0; VEC * sizeof(T) >= 4 && i < sizeof(v.word) / sizeof(Elements::Word);
                  ++i) asm("" : "+r"(*(unsigned*)&v.word[i]));
    write(to, v);
    return;
  }
  UNROLLED for (int e = 0; e < VEC; ++e) {
    if (lane.has(c, e)) to[e] = v.element[e];
  }
}

typedef const T* Matrices[TENSORS];

/// Rows between two passes over them: kept in registers, kept in shared memory, or read again. With
/// PREFETCH the rows that the block serves next are copied to shared memory meanwhile.
struct Kept {
  const Matrices& in;
  Elements held[TENSORS][STORAGE == REGISTERS ? CHUNKS : 1];
  int stage = STAGES - 1;  // buffer of the current rows

  static DEVICE Elements* place(int buffer, int tensor, int c) {
    return (Elements*)dynamic_shared + ((buffer * TENSORS + tensor) * CHUNKS + c) * BLOCK +
           threadIdx.x;
  }
  DEVICE explicit Kept(const Matrices& in, int stage = STAGES - 1) : in(in), stage(stage) {}
  /// Starts the copies of the block's first rows.
  DEVICE void begin(const Team& team, long long rows) {
    if (PREFETCH) request_all(FIRST_GROUP, team, rows, 0);
  }
  /// Makes the rows of `group` available, and starts the copies of the next ones.
  DEVICE void read(const Lane& lane, long long group, const Team& team, long long rows) {
    const long long next = group + GROUP_STEP;
    if (PREFETCH && STORAGE == REGISTERS) {
      take(lane, next, team, rows);
    } else if (PREFETCH) {
      stage = following(stage);
      request_all(next, team, rows, following(stage));
      wait_copies<1>();
    } else if (STORAGE != RELOAD) {
      UNROLLED for (int tensor = 0; tensor < TENSORS; ++tensor) {
        lane.each<PASS_UNROLL>([&](int c) {
          if (STORAGE == REGISTERS)
            held[tensor][STORAGE == REGISTERS ? c : 0] = fetch(in[tensor], lane, c);
          else
            *place(0, tensor, c) = fetch(in[tensor], lane, c);
        });
      }
    }
  }
  /// The previous rows, which DEFER still holds.
  DEVICE Kept before() const { return Kept(in, stage == 0 ? STAGES - 1 : stage - 1); }
  DEVICE Elements get(const Lane& lane, int c, int tensor = 0) const {
    if (STORAGE == REGISTERS) return held[tensor][STORAGE == REGISTERS ? c : 0];
    if (STORAGE == SHARED) return *place(stage, tensor, c);
    return fetch(in[tensor], lane, c);
  }
  /// Starts the copy of vector c of a row.
  DEVICE void request(const Lane& lane, int buffer, int c) const {
    if (!lane.has(c)) return;
    UNROLLED for (int tensor = 0; tensor < TENSORS; ++tensor)
        copy_async(place(buffer, tensor, c), in[tensor] + lane.base + lane.at(c));
  }

 private:
  static DEVICE int following(int buffer) { return buffer + 1 == STAGES ? 0 : buffer + 1; }
  /// Starts the copies of the rows of `group`, if there are any. Rows that go to registers are
  /// committed as one batch per chunk, others as one batch.
  DEVICE void request_all(long long group, const Team& team, long long rows, int buffer) const {
    const Lane lane(row_of(group, team, rows), team);
    UNROLLED for (int c = 0; c < CHUNKS; ++c) {
      if (group < rows) request(lane, buffer, c);
      if (STORAGE == REGISTERS) commit_copies();
    }
    if (STORAGE != REGISTERS) commit_copies();
  }
  /// Moves the current rows to registers, chunk by chunk as they arrive, and starts the copies of
  /// the next rows into the freed buffers.
  DEVICE void take(const Lane& lane, long long next, const Team& team, long long rows) {
    const Lane next_lane(row_of(next, team, rows), team);
    UNROLLED for (int c = 0; c < CHUNKS; ++c) {
      wait_copies<CHUNKS - 1>();
      UNROLLED for (int tensor = 0; tensor < TENSORS; ++tensor) {
        if (lane.has(c)) held[tensor][STORAGE == REGISTERS ? c : 0] = *place(0, tensor, c);
      }
      if (next < rows) request(next_lane, 0, c);
      commit_copies();
    }
  }
};

/// The threads that hold different parts of a row, and how their values are combined.
struct OverBlock {
  int& slot;
  template <class Op, int N>
  DEVICE void combine(float (&values)[N]) const {
    row_reduce<Op>(values, slot);
  }
};
template <int LANES>
struct OverLanes {
  template <class Op, int N>
  DEVICE void combine(float (&values)[N]) const {
    warp_reduce<Op, LANES>(values);
  }
};

/// COUNT parts of a row, a power of two, in each of these threads.
template <class Part, int COUNT, class Threads>
struct Parts {
  const Part (&part)[COUNT];
  const Threads& threads;

  /// Combines N numbers, which `get` reads from each part.
  template <class Op, int N, class Get>
  DEVICE void combine(float (&values)[N], const Get& get) const {
    float leaves[N][COUNT];
    UNROLLED for (int p = 0; p < COUNT; ++p) {
      get(part[p], values);
      UNROLLED for (int i = 0; i < N; ++i) leaves[i][p] = values[i];
    }
    UNROLLED for (int i = 0; i < N; ++i) values[i] = tree<Op, COUNT>(leaves[i]);
    threads.template combine<Op>(values);
  }
  /// The same for one number.
  template <class Op, class Get>
  DEVICE float combine(const Get& get) const {
    float values[1];
    combine<Op>(values, [&](const Part& p, float(&value)[1]) { value[0] = get(p); });
    return values[0];
  }
};
/// The combination of parts with `count` elements.
template <class Part, int COUNT, class Threads>
DEVICE Part whole(const Part (&parts)[COUNT], int count, const Threads& threads) {
  return Part::of(Parts<Part, COUNT, Threads>{parts, threads}, count);
}
/// The combination of two parts.
template <class Part>
DEVICE Part joined(const Part& a, const Part& b, float count) {
  const Part both[2] = {a, b};
  return whole(both, (int)count, OverLanes<1>());
}

#if SPLIT > 1
// Two launches: step 0 writes the partial results of each row to `parts`, step 1 combines them and
// writes the row.
#define SPLIT_PARAMETERS , float* __restrict__ parts, int step
#define SPLIT_ARGUMENTS , parts, step
#else
#define SPLIT_PARAMETERS
#define SPLIT_ARGUMENTS
#endif

/// One pass over the rows of a block, for an operator that has
///       Part, a struct of floats that describes some elements of a row (by default, no element);
///       Part::of(parts, count) combines `Parts`;
///       measure(lane, kept, team) returns the block's Part of a row;
///       write(lane, kept, all) gets the Part of the whole row.
/// With DEFER a row is written after the next one was measured, which hides the exchange.
template <class Operator>
struct Pass {
  typedef typename Operator::Part Part;
  static constexpr int WORDS = sizeof(Part) / sizeof(float);
  long long rows;
  Team team;
  Kept kept;

  DEVICE Pass(const Matrices& in, long long rows) : rows(rows), kept(in) {
#if CLUSTER > 1
    enter_cluster<0>();
#endif
    kept.begin(team, rows);
  }

#if SPLIT > 1
  DEVICE void run(Operator& op, float* parts, int step) {
    FOR_EACH_GROUP(row) {
      const Lane lane(row, team);
      Part* const row_parts = (Part*)parts + row * SPLIT;
      if (step == 0) {
        const Part mine = op.measure(lane, kept, team);
        if (team.t == 0) row_parts[PART_INDEX] = mine;
      } else {
        const Part mine[1] = {team.t < SPLIT ? row_parts[team.t] : Part()};
        const Part all = whole(mine, COLS, OverBlock{team.slot});
        op.write(lane, kept, all);
      }
    }
  }
#else
  DEVICE void run(Operator& op) {
    Part mine, previous;
    long long last = -1;
    FOR_EACH_GROUP(group) {
      const Lane lane(row_of(group, team, rows), team);
      kept.read(lane, group, team, rows);
      previous = mine;
      mine = op.measure(lane, kept, team);
      send_to_cluster(mine);
      if (!DEFER)
        finish(op, group, kept, mine);
      else if (last >= 0)
        finish(op, last, kept.before(), previous);
      last = group;
    }
    if (DEFER && last >= 0) finish(op, last, kept, mine);
  }
#endif

 private:
  DEVICE void send_to_cluster(const Part& mine) {
#if CLUSTER > 1
    send<0, WORDS>((const float(&)[WORDS])mine, team.sent++, 0, threadIdx.x);
#endif
  }
  DEVICE Part receive_from_cluster(const Part& mine) {
#if CLUSTER > 1
    const InWords<float>* const sent = receive<0, WORDS, float>(team.received++);
    Part parts[CLUSTER];
    UNROLLED for (int i = 0; i < CLUSTER * WORDS; ++i)(
        (float(&)[WORDS])parts[i / WORDS])[i % WORDS] = sent[i % WORDS * CLUSTER + i / WORDS].value;
    return whole(parts, COLS, OverLanes<1>());
#else
    return mine;
#endif
  }
  DEVICE void finish(Operator& op, long long group, const Kept& rows_kept, const Part& mine) {
    const Part all = receive_from_cluster(mine);
    if (active(group, team, rows)) op.write(Lane(row_of(group, team, rows), team), rows_kept, all);
  }
};
