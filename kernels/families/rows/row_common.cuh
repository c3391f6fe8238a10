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
// no thread looks beyond its part
constexpr bool EXACT = EVEN && CHUNKS * THREADS_PER_ROW * VEC == PART;
// registers are known by number: unrolled fully
constexpr int PASS_UNROLL = STORAGE == REGISTERS ? 1024 : UNROLL;
constexpr int WRITE_UNROLL = KEEP ? 1024 : PASS_UNROLL;
// Vectors whose sums make one link of a thread's chain. Where one element outweighs all others,
// links err in one direction; narrow vectors in float32 would err more than a plain kernel may.
// 16-bit results do not show it.
constexpr int SPAN = sizeof(T) < 4 ? 16 : VEC < 4 ? 4 : 8;
constexpr bool DEFER = PREFETCH == 2;  // rows are written after the next ones have been measured
// Buffers for rows in shared memory: to keep them, to receive the next ones meanwhile, and for the
// rows before these, which DEFER writes while the blocks of the cluster exchange what they found.
constexpr int STAGES = (STORAGE == SHARED ? 1 : 0) + (PREFETCH ? 1 : 0) + (DEFER ? 1 : 0);

// Dynamic shared memory. All of it belongs to single threads, so that none of it needs a barrier:
// what thread i has at place p of an area lies at p * BLOCK + i.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

#define MINUS_INFINITY __int_as_float(0xff800000)
#define PART_INDEX ((int)(blockIdx.x % PARTS))
#define FIRST_GROUP \
  ((long long)(blockIdx.x / PARTS) * ROWS_PER_BLOCK)  // first of the rows that a block begins with
#define GROUP_STEP ((long long)(gridDim.x / PARTS) * ROWS_PER_BLOCK)
#define FOR_EACH_GROUP(group) for (long long group = FIRST_GROUP; group < rows; group += GROUP_STEP)

typedef Vector<T> Elements;

/// Where a thread stands in its block, and which half of the reductions' memory comes next: as it
/// alternates, one barrier per reduction is enough.
struct Team {
  int t = threadIdx.x % THREADS_PER_ROW;  // thread of the row
  int r = threadIdx.x / THREADS_PER_ROW;  // row of the block
  int slot = 0;
  unsigned sent = 0, received = 0;  // what the blocks of the cluster told each other, so far
};

/// Threads beyond the last row repeat the group's first, so that barriers meet, and store nothing.
DEVICE bool active(long long group, const Team& team, long long rows) {
  return ROWS_PER_BLOCK == 1 || group + team.r < rows;
}
DEVICE long long row_of(long long group, const Team& team, long long rows) {
  return active(group, team, rows) ? group + team.r : group;
}

/// One thread's share of one row: its vector c lies `at(c)` elements behind `base`, which is where
/// the block's part begins.
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
  /// Does vector c hold an element of the row?
  DEVICE bool has(int c) const { return EXACT || at(c) < end; }
  /// Are all its elements of the row? Only the first and the last chunk can say no, which unrolled
  /// loops know when compiled.
  DEVICE bool whole(int c) const {
    const bool edge = c == 0 || (PARTS - 1) * PART + (c + 1) * THREADS_PER_ROW * VEC > COLS;
    return !PEELED || !edge || (at(c) >= first && at(c) + VEC <= end);
  }
  DEVICE bool has(int c, int e) const {
    return whole(c) || (at(c) + e >= first && at(c) + e < end);
  }
  /// Elements of the row in the block's part.
  DEVICE int count() const { return PARTS == 1 ? COLS : max(0, end - max(0, first)); }
  /// Every vector, or every STEP-th, that holds elements of the row.
  template <int AT_ONCE, int STEP = 1, class Use>
  DEVICE void each(const Use& use, int from = 0, int to = CHUNKS) const {
#pragma unroll AT_ONCE
    for (int c = from; c < to; c += STEP) {
      if (has(c)) use(c);
    }
  }
};

/// Vector c of a matrix; NEUTRAL stands in for elements that are not of the row.
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

/// Rounds to T and stores what is of the row.
DEVICE void put(T* matrix, const Lane& lane, int c, const float (&values)[VEC]) {
  Elements v;
  UNROLLED for (int e = 0; e < VEC; ++e) store(v.element[e], values[e]);
  T* to = matrix + lane.base + lane.at(c);
  if (lane.whole(c)) {
    // A compiler that sees what the words are put together from may store the pieces one by one.
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
  int stage = STAGES - 1;  // buffer of the rows at hand

  static DEVICE Elements* place(int buffer, int tensor, int c) {
    return (Elements*)dynamic_shared + ((buffer * TENSORS + tensor) * CHUNKS + c) * BLOCK +
           threadIdx.x;
  }
  DEVICE explicit Kept(const Matrices& in, int stage = STAGES - 1) : in(in), stage(stage) {}
  /// Asks for the rows that the block begins with.
  DEVICE void begin(const Team& team, long long rows) {
    if (PREFETCH) request_all(FIRST_GROUP, team, rows, 0);
  }
  /// Has the rows of `group` at hand, and asks for those that come next.
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
  /// The rows before these, which DEFER still has.
  DEVICE Kept before() const { return Kept(in, stage == 0 ? STAGES - 1 : stage - 1); }
  DEVICE Elements get(const Lane& lane, int c, int tensor = 0) const {
    if (STORAGE == REGISTERS) return held[tensor][STORAGE == REGISTERS ? c : 0];
    if (STORAGE == SHARED) return *place(stage, tensor, c);
    return fetch(in[tensor], lane, c);
  }
  /// Asks for vector c of a row.
  DEVICE void request(const Lane& lane, int buffer, int c) const {
    if (!lane.has(c)) return;
    UNROLLED for (int tensor = 0; tensor < TENSORS; ++tensor)
        copy_async(place(buffer, tensor, c), in[tensor] + lane.base + lane.at(c));
  }

 private:
  static DEVICE int following(int buffer) { return buffer + 1 == STAGES ? 0 : buffer + 1; }
  /// Asks for the rows of `group`, if there are any. Rows that go on to registers come in a batch
  /// per chunk, the others in one.
  DEVICE void request_all(long long group, const Team& team, long long rows, int buffer) const {
    const Lane lane(row_of(group, team, rows), team);
    UNROLLED for (int c = 0; c < CHUNKS; ++c) {
      if (group < rows) request(lane, buffer, c);
      if (STORAGE == REGISTERS) commit_copies();
    }
    if (STORAGE != REGISTERS) commit_copies();
  }
  /// Moves the rows at hand to registers, chunk by chunk as they come, and asks for the next ones
  /// in their place.
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

/// The threads that know different parts of a row, and how to combine what they have.
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

/// Parts of a row, COUNT with each of these threads, a power of two.
template <class Part, int COUNT, class Threads>
struct Parts {
  const Part (&part)[COUNT];
  const Threads& threads;

  /// Combines N numbers that `tell` has to tell of each.
  template <class Op, int N, class Tell>
  DEVICE void combine(float (&values)[N], const Tell& tell) const {
    float leaves[N][COUNT];
    UNROLLED for (int p = 0; p < COUNT; ++p) {
      tell(part[p], values);
      UNROLLED for (int i = 0; i < N; ++i) leaves[i][p] = values[i];
    }
    UNROLLED for (int i = 0; i < N; ++i) values[i] = tree<Op, COUNT>(leaves[i]);
    threads.template combine<Op>(values);
  }
  /// The same of one number.
  template <class Op, class Tell>
  DEVICE float combine(const Tell& tell) const {
    float values[1];
    combine<Op>(values, [&](const Part& p, float(&value)[1]) { value[0] = tell(p); });
    return values[0];
  }
};
/// What parts with `count` elements come to.
template <class Part, int COUNT, class Threads>
DEVICE Part whole(const Part (&parts)[COUNT], int count, const Threads& threads) {
  return Part::of(Parts<Part, COUNT, Threads>{parts, threads}, count);
}
/// Two of them.
template <class Part>
DEVICE Part joined(const Part& a, const Part& b, float count) {
  const Part both[2] = {a, b};
  return whole(both, (int)count, OverLanes<1>());
}

#if SPLIT > 1
// Two launches: step 0 leaves what the parts of each row come to in `parts`, step 1 puts that
// together and writes.
#define SPLIT_PARAMETERS , float* __restrict__ parts, int step
#define SPLIT_ARGUMENTS , parts, step
#else
#define SPLIT_PARAMETERS
#define SPLIT_ARGUMENTS
#endif

/// What one pass over the rows of a block does, for an operator that has
///   Part, floats: what is known of some elements of a row; as it begins, of none. Part::of(parts,
///   count) puts `Parts` together; measure(lane, kept, team), which returns the block's Part;
///   write(lane, kept, all), given the Part of the whole row.
/// With DEFER a row is written when the next one has been measured, so that nobody waits for the
/// exchange.
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
      Part* const told = (Part*)parts + row * SPLIT;
      if (step == 0) {
        const Part mine = op.measure(lane, kept, team);
        if (team.t == 0) told[PART_INDEX] = mine;
      } else {
        const Part mine[1] = {team.t < SPLIT ? told[team.t] : Part()};
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
      tell_cluster(mine);
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
  DEVICE void tell_cluster(const Part& mine) {
#if CLUSTER > 1
    tell<0, WORDS>((const float(&)[WORDS])mine, team.sent++, 0, threadIdx.x);
#endif
  }
  DEVICE Part all_of(const Part& mine) {
#if CLUSTER > 1
    const InWords<float>* const sent = told<0, WORDS, float>(team.received++);
    Part parts[CLUSTER];
    UNROLLED for (int i = 0; i < CLUSTER * WORDS; ++i)(
        (float(&)[WORDS])parts[i / WORDS])[i % WORDS] = sent[i % WORDS * CLUSTER + i / WORDS].value;
    return whole(parts, COLS, OverLanes<1>());
#else
    return mine;
#endif
  }
  DEVICE void finish(Operator& op, long long group, const Kept& rows_kept, const Part& mine) {
    const Part all = all_of(mine);
    if (active(group, team, rows)) op.write(Lane(row_of(group, team, rows), team), rows_kept, all);
  }
};
