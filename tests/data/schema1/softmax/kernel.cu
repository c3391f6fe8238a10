// softmax in float32, scheduled by atunner.
// threads_per_row=32, rows_per_block=1, vector=4, cluster=1, split=1, storage=registers, fused=0, prefetch=0, keep=0, blocks_per_sm=0
typedef float T;
enum Storage { REGISTERS, SHARED, RELOAD };
constexpr Storage STORAGE = REGISTERS;
constexpr int COLS = 256;
constexpr int THREADS_PER_ROW = 32;
constexpr int ROWS_PER_BLOCK = 1;
constexpr int PREFETCH = 0;
constexpr int KEEP = 0;
constexpr int UNROLL = 8;  // vectors at once of a row that does not stay in registers
constexpr int VEC = 4;  // elements per load
constexpr int TENSORS = 1;  // read row by row
constexpr int PARAMETERS = 0;  // values per column
constexpr int ADD_GROUPS = 8;
constexpr int BOXES = 2;  // that what blocks of a cluster tell each other comes in by turns
constexpr bool BY_VALUE = true;  // what all of them say of one value lies together
#define CLUSTER 1
#define SPLIT 1
#define FUSED 0
#define NEUTRAL MINUS_INFINITY

// Words of all families.
#define DEVICE __device__ __forceinline__
#define UNROLLED _Pragma("unroll")

/// Neighbouring elements that are moved at once.
template <class E, int COUNT>
struct alignas(COUNT * sizeof(E)) Units {
  E element[COUNT];
};

/// 2^x; results below the normal numbers become zero.
DEVICE float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// In a kernel that may start before the launch before it has ended (STARTS_EARLY): until that has, and its results are there.
DEVICE void await_launch_before() {
#ifdef STARTS_EARLY
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

DEVICE unsigned shared_address(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }

/// BYTES, 4, 8 or 16 at a multiple of as many, from global to shared memory behind the thread's back, where the hardware can;
/// zeros when not `valid`.
template <int BYTES>
DEVICE void copy_async(unsigned to, const void* from, bool valid) {
#if __CUDA_ARCH__ >= 800
  if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(valid ? BYTES : 0) : "memory");
#else
  void* const at = __cvta_shared_to_generic(to);
  if (BYTES == 16) *(float4*)at = valid ? *(const float4*)from : make_float4(0, 0, 0, 0);
  else *(float*)at = valid ? *(const float*)from : 0;
#endif
}
/// All of them, on hardware that can.
template <int BYTES>
DEVICE void copy_async(unsigned to, const void* from) {
#if __CUDA_ARCH__ >= 800
  if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
#endif
}
/// Closes a group of copies; waits until at most PENDING of this thread's groups are under way.
DEVICE void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int PENDING>
DEVICE void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

// Elements in memory, and the values that are computed with; 16-bit ones where their types are known.
#define DEVICE __device__ __forceinline__

template <class To, class From> DEVICE To load(const From& v) { return (To)v; }
template <class To, class From> DEVICE void store(To& to, From v) { to = (To)v; }
#ifdef __CUDA_FP16_TYPES_EXIST__
DEVICE float to_real(__half v) { return __half2float(v); }
DEVICE float to_real(__nv_bfloat16 v) { return __bfloat162float(v); }
template <> DEVICE float load(const __half& v) { return to_real(v); }
template <> DEVICE float load(const __nv_bfloat16& v) { return to_real(v); }
template <> DEVICE double load(const __half& v) { return to_real(v); }
template <> DEVICE double load(const __nv_bfloat16& v) { return to_real(v); }
template <class From> DEVICE void store(__half& to, From v) { to = __float2half_rn((float)v); }
template <class From> DEVICE void store(__nv_bfloat16& to, From v) { to = __float2bfloat16_rn((float)v); }
#endif

/// NaN wins.
template <class T> DEVICE T minimum(T a, T b) { return a < b || a != a ? a : b; }
template <class T> DEVICE T maximum(T a, T b) { return a > b || a != a ? a : b; }
#if __CUDA_ARCH__ >= 800
template <> DEVICE float minimum(float a, float b) {
  float c;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
template <> DEVICE float maximum(float a, float b) {
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
#endif

// VEC neighbouring elements, moved by as few instructions as there are 16 bytes. The raw words keep the compiler from
// splitting the access.
template <int BYTES> struct Words {
  typedef uint4 type;
  static constexpr int COUNT = BYTES / 16;
};
template <> struct Words<1> { typedef unsigned char type; static constexpr int COUNT = 1; };
template <> struct Words<2> { typedef unsigned short type; static constexpr int COUNT = 1; };
template <> struct Words<4> { typedef unsigned int type; static constexpr int COUNT = 1; };
template <> struct Words<8> { typedef uint2 type; static constexpr int COUNT = 1; };

template <class T> union Vector;
template <class To, class T> DEVICE To get(const Vector<T>& v, int lane);

template <class T> union Vector {
  typedef Words<VEC * sizeof(T)> Raw;
  typedef typename Words<(VEC * sizeof(T) < 4 ? VEC * sizeof(T) : 4)>::type Word;
  typename Raw::type raw[Raw::COUNT];
  Word word[VEC * sizeof(T) / sizeof(Word)];
  T element[VEC];
  DEVICE Vector() {}
  DEVICE Vector(const Vector& other) { *this = other; }
  DEVICE Vector& operator=(const Vector& other) {
#pragma unroll
    for (int i = 0; i < Raw::COUNT; ++i) raw[i] = other.raw[i];
    return *this;
  }
  DEVICE float operator[](int lane) const { return get<float>(*this, lane); }
};

/// An element as it is computed with.
template <class To, class T> DEVICE To get(const Vector<T>& v, int lane) { return load<To>(v.element[lane]); }
#ifdef __CUDA_BF16_TYPES_EXIST__
/// A bfloat16 is the upper half of a float: one instruction, where the compiler would take the half out first.
template <> DEVICE float get<float, __nv_bfloat16>(const Vector<__nv_bfloat16>& v, int lane) {
  if (VEC == 1) return load<float>(v.element[lane]);
  return __uint_as_float(lane % 2 == 0 ? (unsigned)v.word[lane / 2] << 16 : (unsigned)v.word[lane / 2] & 0xffff0000u);
}
#endif

template <class T> DEVICE void read(Vector<T>& to, const T* from) {
  const auto* words = (const typename Vector<T>::Raw::type*)from;
#pragma unroll
  for (int i = 0; i < Vector<T>::Raw::COUNT; ++i) to.raw[i] = words[i];
}
template <class T> DEVICE void write(T* to, const Vector<T>& from) {
  auto* words = (typename Vector<T>::Raw::type*)to;
#pragma unroll
  for (int i = 0; i < Vector<T>::Raw::COUNT; ++i) words[i] = from.raw[i];
}
template <class T> DEVICE void clear(Vector<T>& to) {
#pragma unroll
  for (int i = 0; i < Vector<T>::Raw::COUNT; ++i) to.raw[i] = typename Vector<T>::Raw::type{};
}

/// A value as words of 32 bits.
template <class T> union InWords {
  static constexpr int COUNT = (sizeof(T) + 3) / 4;
  T value;
  unsigned word[COUNT];
};

/// From global to shared memory behind the thread's back, if it has whole words.
template <class T> DEVICE void copy_async(Vector<T>* to, const T* from) {
  typedef typename Vector<T>::Raw Raw;
  constexpr int BYTES = sizeof(typename Raw::type);
#pragma unroll
  for (int i = 0; i < Raw::COUNT && BYTES >= 4; ++i) copy_async<BYTES>(shared_address(&to->raw[i]), (const typename Raw::type*)from + i);
}

// How two values become one.
struct Sum { template <class T> static DEVICE T of(T a, T b) { return a + b; } };
struct Prod { template <class T> static DEVICE T of(T a, T b) { return a * b; } };
struct Max { template <class T> static DEVICE T of(T a, T b) { return maximum(a, b); } };
struct Min { template <class T> static DEVICE T of(T a, T b) { return minimum(a, b); } };
struct Any { template <class T> static DEVICE T of(T a, T b) { return a | b; } };
struct All { template <class T> static DEVICE T of(T a, T b) { return a & b; } };

/// Combines N values, a power of two, in a tree: among many small terms and a large one, a chain would round in the same
/// direction every time, and a loop over an array would lie in local memory from 16 on.
template <class Op, int N, class T> DEVICE T tree(const T* leaves) {
  if constexpr (N == 1) return leaves[0];
  else return Op::of(tree<Op, N / 2>(leaves), tree<Op, N / 2>(leaves + N / 2));
}

/// Combines each of N values over LANES neighbouring threads of a warp; all of them get the results.
template <class Op, int LANES, int N, class T> DEVICE void warp_reduce(T (&values)[N]) {
#pragma unroll
  for (int offset = LANES / 2; offset > 0; offset /= 2) {
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = Op::of(values[i], (T)__shfl_xor_sync(0xffffffffu, values[i], offset));
  }
}

// Reductions over the threads of a block that share a row: THREADS_PER_ROW for each of ROWS_PER_BLOCK.
constexpr int BLOCK = THREADS_PER_ROW * ROWS_PER_BLOCK;
constexpr int WARPS_PER_ROW = THREADS_PER_ROW > 32 ? THREADS_PER_ROW / 32 : 1;

/// The same over the threads of a row. `slot` alternates between two areas of shared memory, so that one barrier is enough.
template <class Op, int N, class T> DEVICE void row_reduce(T (&values)[N], int& slot) {
  warp_reduce<Op, (THREADS_PER_ROW < 32 ? THREADS_PER_ROW : 32)>(values);
  if (WARPS_PER_ROW == 1) return;
  __shared__ __align__(16) T part[2][ROWS_PER_BLOCK][N][WARPS_PER_ROW];
  slot ^= 1;
  const int row = threadIdx.x / THREADS_PER_ROW;
  const int thread = threadIdx.x % THREADS_PER_ROW;
#pragma unroll
  for (int i = 0; i < N && thread % 32 == 0; ++i) part[slot][row][i][thread / 32] = values[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = tree<Op, WARPS_PER_ROW>(part[slot][row][i]);
}
template <class Op, class T> DEVICE T row_reduce(T value, int& slot) {
  T values[1] = {value};
  row_reduce<Op>(values, slot);
  return values[0];
}

// Shared by the row kernels. A row of COLS elements belongs to THREADS_PER_ROW threads of each of PARTS blocks; a block
// serves ROWS_PER_BLOCK rows at once. The blocks of a cluster exchange their sums through distributed shared memory; those of
// a split row through a workspace, between two launches.
// With PREFETCH the next rows are copied meanwhile; with KEEP values per column stay in registers.
// Memory is seen as vectors of VEC elements at multiples of VEC. Where VEC does not divide COLS, rows begin and end inside
// of vectors; those vectors are moved element by element.
constexpr int PARTS = CLUSTER * SPLIT;                 // blocks that share a row
constexpr bool PEELED = COLS % VEC != 0;               // rows begin at any element
constexpr int WINDOW = COLS + (PEELED ? VEC - 1 : 0);  // elements of the vectors that a row touches, at most
constexpr int PART = ((WINDOW + VEC - 1) / VEC + PARTS - 1) / PARTS * VEC;
constexpr int CHUNKS = (PART + THREADS_PER_ROW * VEC - 1) / (THREADS_PER_ROW * VEC);
constexpr bool EVEN = !PEELED && PART * PARTS == COLS;                 // all parts are equally long
constexpr bool EXACT = EVEN && CHUNKS * THREADS_PER_ROW * VEC == PART;  // no thread looks beyond its part
constexpr int PASS_UNROLL = STORAGE == REGISTERS ? 1024 : UNROLL;  // registers are known by number: unrolled fully
constexpr int WRITE_UNROLL = KEEP ? 1024 : PASS_UNROLL;
// Vectors whose sums make one link of a thread's chain. Where one element outweighs all others, links err in one direction;
// narrow vectors in float32 would err more than a plain kernel may. 16-bit results do not show it.
constexpr int SPAN = sizeof(T) < 4 ? 16 : VEC < 4 ? 4 : 8;
constexpr bool DEFER = PREFETCH == 2;  // rows are written after the next ones have been measured
// Buffers for rows in shared memory: to keep them, to receive the next ones meanwhile, and for the rows before these, which
// DEFER writes while the blocks of the cluster exchange what they found.
constexpr int STAGES = (STORAGE == SHARED ? 1 : 0) + (PREFETCH ? 1 : 0) + (DEFER ? 1 : 0);

// Dynamic shared memory. All of it belongs to single threads, so that none of it needs a barrier: what thread i has at place
// p of an area lies at p * BLOCK + i.
extern __shared__ __align__(16) unsigned char dynamic_shared[];

#define MINUS_INFINITY __int_as_float(0xff800000)
#define PART_INDEX ((int)(blockIdx.x % PARTS))
#define FIRST_GROUP ((long long)(blockIdx.x / PARTS) * ROWS_PER_BLOCK)  // first of the rows that a block begins with
#define GROUP_STEP ((long long)(gridDim.x / PARTS) * ROWS_PER_BLOCK)
#define FOR_EACH_GROUP(group) for (long long group = FIRST_GROUP; group < rows; group += GROUP_STEP)

typedef Vector<T> Elements;

/// Where a thread stands in its block, and which half of the reductions' memory comes next: as it alternates, one barrier
/// per reduction is enough.
struct Team {
  int t = threadIdx.x % THREADS_PER_ROW;  // thread of the row
  int r = threadIdx.x / THREADS_PER_ROW;  // row of the block
  int slot = 0;
  unsigned sent = 0, received = 0;  // what the blocks of the cluster told each other, so far
};

/// Threads beyond the last row repeat the group's first, so that barriers meet, and store nothing.
DEVICE bool active(long long group, const Team& team, long long rows) { return ROWS_PER_BLOCK == 1 || group + team.r < rows; }
DEVICE long long row_of(long long group, const Team& team, long long rows) { return active(group, team, rows) ? group + team.r : group; }

/// One thread's share of one row: its vector c lies `at(c)` elements behind `base`, which is where the block's part begins.
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
  /// Are all its elements of the row? Only the first and the last chunk can say no, which unrolled loops know when compiled.
  DEVICE bool whole(int c) const {
    const bool edge = c == 0 || (PARTS - 1) * PART + (c + 1) * THREADS_PER_ROW * VEC > COLS;
    return !PEELED || !edge || (at(c) >= first && at(c) + VEC <= end);
  }
  DEVICE bool has(int c, int e) const { return whole(c) || (at(c) + e >= first && at(c) + e < end); }
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
    if (lane.has(c, e)) v.element[e] = from[e];
    else store(v.element[e], NEUTRAL);
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
    UNROLLED for (int i = 0; VEC * sizeof(T) >= 4 && i < sizeof(v.word) / sizeof(Elements::Word); ++i) asm("" : "+r"(*(unsigned*)&v.word[i]));
    write(to, v);
    return;
  }
  UNROLLED for (int e = 0; e < VEC; ++e) {
    if (lane.has(c, e)) to[e] = v.element[e];
  }
}

typedef const T* Matrices[TENSORS];

/// Rows between two passes over them: kept in registers, kept in shared memory, or read again. With PREFETCH the rows that
/// the block serves next are copied to shared memory meanwhile.
struct Kept {
  const Matrices& in;
  Elements held[TENSORS][STORAGE == REGISTERS ? CHUNKS : 1];
  int stage = STAGES - 1;  // buffer of the rows at hand

  static DEVICE Elements* place(int buffer, int tensor, int c) {
    return (Elements*)dynamic_shared + ((buffer * TENSORS + tensor) * CHUNKS + c) * BLOCK + threadIdx.x;
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
          if (STORAGE == REGISTERS) held[tensor][STORAGE == REGISTERS ? c : 0] = fetch(in[tensor], lane, c);
          else *place(0, tensor, c) = fetch(in[tensor], lane, c);
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
    UNROLLED for (int tensor = 0; tensor < TENSORS; ++tensor) copy_async(place(buffer, tensor, c), in[tensor] + lane.base + lane.at(c));
  }

 private:
  static DEVICE int following(int buffer) { return buffer + 1 == STAGES ? 0 : buffer + 1; }
  /// Asks for the rows of `group`, if there are any. Rows that go on to registers come in a batch per chunk, the others in one.
  DEVICE void request_all(long long group, const Team& team, long long rows, int buffer) const {
    const Lane lane(row_of(group, team, rows), team);
    UNROLLED for (int c = 0; c < CHUNKS; ++c) {
      if (group < rows) request(lane, buffer, c);
      if (STORAGE == REGISTERS) commit_copies();
    }
    if (STORAGE != REGISTERS) commit_copies();
  }
  /// Moves the rows at hand to registers, chunk by chunk as they come, and asks for the next ones in their place.
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
  template <class Op, int N> DEVICE void combine(float (&values)[N]) const { row_reduce<Op>(values, slot); }
};
template <int LANES>
struct OverLanes {
  template <class Op, int N> DEVICE void combine(float (&values)[N]) const { warp_reduce<Op, LANES>(values); }
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
    combine<Op>(values, [&](const Part& p, float (&value)[1]) { value[0] = tell(p); });
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
// Two launches: step 0 leaves what the parts of each row come to in `parts`, step 1 puts that together and writes.
#define SPLIT_PARAMETERS , float* __restrict__ parts, int step
#define SPLIT_ARGUMENTS , parts, step
#else
#define SPLIT_PARAMETERS
#define SPLIT_ARGUMENTS
#endif

/// What one pass over the rows of a block does, for an operator that has
///   Part, floats: what is known of some elements of a row; as it begins, of none. Part::of(parts, count) puts `Parts` together;
///   measure(lane, kept, team), which returns the block's Part;
///   write(lane, kept, all), given the Part of the whole row.
/// With DEFER a row is written when the next one has been measured, so that nobody waits for the exchange.
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
      if (!DEFER) finish(op, group, kept, mine);
      else if (last >= 0) finish(op, last, kept.before(), previous);
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
    UNROLLED for (int i = 0; i < CLUSTER * WORDS; ++i) ((float(&)[WORDS])parts[i / WORDS])[i % WORDS] = sent[i % WORDS * CLUSTER + i / WORDS].value;
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

constexpr float LOG2E = 1.4426950408889634f;

/// exp(v - top) as 2^(v * factor + offset), one fused multiply-add. The offset is rounded, which multiplies all weights
/// of the row by the same factor, 2^32 at most; their sum takes it out. Tops beyond that lie so far apart from other floats that
/// only their equals have a weight; there nothing must be rounded (rows of nothing but a mask).
struct Shift {
  float factor, offset;

  DEVICE explicit Shift(float top) {
    factor = fabsf(top) > 5e8f ? 1.0f : LOG2E;
    offset = top == MINUS_INFINITY ? 0.0f : __fmul_rn(-top, factor);  // never fused: the same everywhere
  }
  DEVICE float weight(float v) const { return power_of_two(fmaf(v, factor, offset)); }
  /// What weights over `from` lack.
  DEVICE float since(float from) const { return from == MINUS_INFINITY ? 0.0f : power_of_two(offset - Shift(from).offset); }
};

/// The largest of some elements of a row, and the sum of their weights over it.
struct Peak {
  float top = MINUS_INFINITY;
  float total = 0;

  template <class Parts>
  static DEVICE Peak of(const Parts& parts, int) {
    const float top = parts.template combine<Max>([](const Peak& p) { return p.top; });
    const Shift over(top);
    return {top, parts.template combine<Sum>([&](const Peak& p) { return p.total * over.since(p.top); })};
  }
};

/// The largest of some elements, NaN if there is one. Elements of 16 bits are compared in pairs.
struct Top {
#if defined(__CUDA_FP16_TYPES_EXIST__) && __CUDA_ARCH__ >= 800
  static constexpr bool PAIRS = VEC > 1;
  static DEVICE unsigned larger(unsigned a, unsigned b, __half) {
    asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
  }
  static DEVICE unsigned larger(unsigned a, unsigned b, __nv_bfloat16) {
    asm("max.NaN.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
  }
#else
  static constexpr bool PAIRS = false;
  template <class U> static DEVICE unsigned larger(unsigned a, unsigned, U) { return a; }
#endif
  Elements pairs;
  float top = MINUS_INFINITY;

  DEVICE Top() {
    UNROLLED for (int e = 0; e < VEC; ++e) store(pairs.element[e], MINUS_INFINITY);
  }
  DEVICE void add(const Elements& v) {
    if (PAIRS) {
      UNROLLED for (int w = 0; w < sizeof(v.word) / sizeof(Elements::Word); ++w) pairs.word[w] = larger(pairs.word[w], v.word[w], T());
    } else {
      UNROLLED for (int e = 0; e < VEC; ++e) top = Max::of(top, v[e]);
    }
  }
  DEVICE float value() const {
    float all = top;
    UNROLLED for (int e = 0; PAIRS && e < VEC; ++e) all = Max::of(all, pairs[e]);
    return all;
  }
};

struct Softmax {
  typedef Peak Part;
  T* y;

  DEVICE explicit Softmax(T* y) : y(y) {}
  DEVICE Peak measure(const Lane& lane, const Kept& kept, Team& team) {
    if (STORAGE != RELOAD) return measure_kept(lane, kept, team);
    const Peak mine[1] = {scan(lane, kept)};
    return whole(mine, COLS, OverBlock{team.slot});
  }
  DEVICE void write(const Lane& lane, const Kept& kept, const Peak& peak) {
    const float scale = 1.0f / peak.total;
    const Shift over(peak.top);
    lane.each<WRITE_UNROLL>([&](int c) {
      const Elements v = kept.get(lane, c);
      float out[VEC];
      UNROLLED for (int e = 0; e < VEC; ++e) out[e] = over.weight(v[e]) * scale;
      put(y, lane, c, out);
    });
  }

 private:
  DEVICE Peak measure_kept(const Lane& lane, const Kept& kept, Team& team) {
    Top top;
    lane.each<PASS_UNROLL>([&](int c) { top.add(kept.get(lane, c)); });
    Peak peak;
    peak.top = row_reduce<Max>(top.value(), team.slot);
    const Shift over(peak.top);
    lane.each<PASS_UNROLL, SPAN>([&](int first) {
      float total = 0;
      lane.each<PASS_UNROLL>([&](int c) {
        const Elements v = kept.get(lane, c);
        float sum = 0;
        UNROLLED for (int e = 0; e < VEC; ++e) sum += over.weight(v[e]);
        total += sum;
      }, first, min(first + SPAN, CHUNKS));
      peak.total = first == 0 ? total : peak.total + total;
    });
    peak.total = row_reduce<Sum>(peak.total, team.slot);
    return peak;
  }
  /// This thread's share of a row that has to be read again, in one pass: when a larger element comes, the sum so far shrinks.
  static DEVICE Peak scan(const Lane& lane, const Kept& kept) {
    Peak all;
    lane.each<1, SPAN>([&](int first) {
      Peak peak;
      lane.each<UNROLL>([&](int c) {
        const Elements v = kept.get(lane, c);
        Top largest;
        largest.add(v);
        const float top = Max::of(peak.top, largest.value());
        const Shift over(top);
        float sum = 0;
        UNROLLED for (int e = 0; e < VEC; ++e) sum += over.weight(v[e]);
        peak = {top, peak.total * over.since(peak.top) + sum};
      }, first, min(first + SPAN, CHUNKS));
      all = first == 0 ? peak : joined(all, peak, COLS);
    });
    return all;
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ x, T* __restrict__ y, long long rows SPLIT_PARAMETERS) {
  const Matrices in = {x};
  Pass<Softmax> pass(in, rows);
  Softmax softmax(y);
  pass.run(softmax SPLIT_ARGUMENTS);
}
