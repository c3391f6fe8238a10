// Shared by the row kernels. A row of COLS elements belongs to THREADS_PER_ROW threads of each of PARTS blocks; a block
// serves ROWS_PER_BLOCK rows at once. The blocks of a cluster exchange their sums through distributed shared memory; those of
// a split row through a workspace, between two kernels.
// Memory is seen as vectors of VEC elements at multiples of VEC. Where VEC does not divide COLS, rows begin and end inside
// of vectors; those vectors are moved element by element.
#define DEVICE __device__ __forceinline__

constexpr int BLOCK = THREADS_PER_ROW * ROWS_PER_BLOCK;
constexpr int PARTS = CLUSTER * SPLIT;                 // blocks that share a row
constexpr bool PEELED = COLS % VEC != 0;               // rows begin at any element
constexpr int WINDOW = COLS + (PEELED ? VEC - 1 : 0);  // elements of the vectors that a row touches, at most
constexpr int PART = ((WINDOW + VEC - 1) / VEC + PARTS - 1) / PARTS * VEC;
constexpr int CHUNKS = (PART + THREADS_PER_ROW * VEC - 1) / (THREADS_PER_ROW * VEC);
constexpr bool EVEN = !PEELED && PART * PARTS == COLS;                 // all parts are equally long
constexpr bool EXACT = EVEN && CHUNKS * THREADS_PER_ROW * VEC == PART;  // no thread looks beyond its part
constexpr int WARPS_PER_ROW = THREADS_PER_ROW > 32 ? THREADS_PER_ROW / 32 : 1;
constexpr int PASS_UNROLL = STORAGE == REGISTERS ? 1024 : UNROLL;  // registers are known by number: unrolled fully
// Buffers for rows in shared memory: to keep them, and to receive the next ones meanwhile.
constexpr int STAGES = (STORAGE == SHARED ? 1 : 0) + (PREFETCH ? 1 : 0);

// Dynamic shared memory. All of it belongs to single threads, so that none of it needs a barrier: what thread i has at place
// p of an area lies at p * BLOCK + i.
constexpr int KEPT_VECTORS = STAGES * TENSORS * CHUNKS;
constexpr int PARAMETER_VECTORS = KEEP_PARAMETERS ? PARAMETERS * CHUNKS : 0;
extern __shared__ __align__(16) unsigned char dynamic_shared[];

#define MINUS_INFINITY __int_as_float(0xff800000)
#define PART_INDEX ((int)(blockIdx.x % PARTS))
#define FIRST_GROUP ((long long)(blockIdx.x / PARTS) * ROWS_PER_BLOCK)  // first of the rows that a block begins with
#define GROUP_STEP ((long long)(gridDim.x / PARTS) * ROWS_PER_BLOCK)
#define FOR_EACH_GROUP(group) for (long long group = FIRST_GROUP; group < rows; group += GROUP_STEP)

DEVICE float to_float(float v) { return v; }
DEVICE void from_float(float& to, float v) { to = v; }
#ifdef __CUDA_FP16_TYPES_EXIST__
DEVICE float to_float(__half v) { return __half2float(v); }
DEVICE void from_float(__half& to, float v) { to = __float2half_rn(v); }
#endif
#ifdef __CUDA_BF16_TYPES_EXIST__
DEVICE float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }
DEVICE void from_float(__nv_bfloat16& to, float v) { to = __float2bfloat16_rn(v); }
#endif

/// VEC elements moved by one instruction. The raw words keep the compiler from splitting the access.
template <int BYTES> struct Raw;
template <> struct Raw<2> { typedef unsigned short type; };
template <> struct Raw<4> { typedef unsigned int type; };
template <> struct Raw<8> { typedef uint2 type; };
template <> struct Raw<16> { typedef uint4 type; };
typedef typename Raw<VEC * sizeof(T)>::type RawVector;
struct Vector {
  union {
    RawVector raw;
    T element[VEC];
  };
  __device__ Vector() {}
  __device__ Vector(const Vector& other) : raw(other.raw) {}
  __device__ Vector& operator=(const Vector& other) {
    raw = other.raw;
    return *this;
  }
  DEVICE float operator[](int e) const { return to_float(element[e]); }
};

DEVICE Vector load(const T* at) {
  Vector v;
  v.raw = STREAM ? __ldcs((const RawVector*)at) : *(const RawVector*)at;
  return v;
}
DEVICE void store(T* at, const Vector& v) {
  if (STREAM) __stcs((RawVector*)at, v.raw);
  else *(RawVector*)at = v.raw;
}

/// Where a thread stands in its block, and which half of the reductions' memory comes next: as it alternates, one barrier
/// per reduction is enough.
struct Team {
  int t = threadIdx.x % THREADS_PER_ROW;  // thread of the row
  int r = threadIdx.x / THREADS_PER_ROW;  // row of the block
  int slot = 0;
  unsigned exchanges = 0;  // with the other blocks of the cluster, so far
};

/// Threads beyond the last row repeat the group's first, so that barriers meet, and store nothing.
DEVICE bool active(long long group, const Team& team, long long rows) { return ROWS_PER_BLOCK == 1 || group + team.r < rows; }
DEVICE long long row_of(long long group, const Team& team, long long rows) { return active(group, team, rows) ? group + team.r : group; }

/// One thread's share of one row: its vector c lies `at(c)` elements behind `base`, which is where the block's part begins.
struct Lane {
  int t;           // among the threads of the row
  long long base;  // a multiple of VEC
  int first, end;  // the row's elements, counted from base

  DEVICE Lane(long long row, const Team& team) : t(team.t) {
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
};

/// Vector c of a matrix; NEUTRAL stands in for elements that are not of the row.
DEVICE Vector fetch(const T* matrix, const Lane& lane, int c) {
  const T* from = matrix + lane.base + lane.at(c);
  if (lane.whole(c)) return load(from);
  Vector v;
#pragma unroll
  for (int e = 0; e < VEC; ++e) {
    if (lane.has(c, e)) v.element[e] = from[e];
    else from_float(v.element[e], NEUTRAL);
  }
  return v;
}

/// Rounds to T and stores what is of the row.
DEVICE void put(T* matrix, const Lane& lane, int c, const float (&values)[VEC]) {
  Vector v;
#pragma unroll
  for (int e = 0; e < VEC; ++e) from_float(v.element[e], values[e]);
  T* to = matrix + lane.base + lane.at(c);
  if (lane.whole(c)) {
    store(to, v);
    return;
  }
#pragma unroll
  for (int e = 0; e < VEC; ++e) {
    if (lane.has(c, e)) to[e] = v.element[e];
  }
}

/// 16, 8 or 4 bytes from global to shared memory, behind the thread's back.
DEVICE void copy_async(Vector* to, const T* from) {
#if __CUDA_ARCH__ >= 800
  const unsigned address = (unsigned)__cvta_generic_to_shared(to);
  if (sizeof(Vector) == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"((int)sizeof(Vector)) : "memory");
#endif
}
DEVICE void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

typedef const T* Matrices[TENSORS];

/// Rows between two passes over them: kept in registers, kept in shared memory, or read again. With PREFETCH the rows that
/// the block serves next are copied to shared memory meanwhile.
struct Kept {
  Vector held[TENSORS][STORAGE == REGISTERS ? CHUNKS : 1];
  int stage = STAGES - 1;  // buffer of the rows at hand; the other one, if any, receives the next

  static DEVICE Vector* place(int buffer, int tensor, int c) {
    return (Vector*)dynamic_shared + ((buffer * TENSORS + tensor) * CHUNKS + c) * BLOCK + threadIdx.x;
  }
  static DEVICE void request(const Matrices& matrices, const Lane& lane, int buffer) {
#pragma unroll
    for (int tensor = 0; tensor < TENSORS; ++tensor) {
#pragma unroll
      for (int c = 0; c < CHUNKS; ++c) {
        if (lane.has(c)) copy_async(place(buffer, tensor, c), matrices[tensor] + lane.base + lane.at(c));
      }
    }
  }
  /// Asks for the rows that the block begins with.
  DEVICE void begin(const Matrices& matrices, const Team& team, long long rows) {
    if (PREFETCH && FIRST_GROUP < rows) request(matrices, Lane(row_of(FIRST_GROUP, team, rows), team), 0);
  }
  /// Has the rows of `group` at hand, and asks for those that come next.
  DEVICE void read(const Matrices& matrices, const Lane& lane, long long group, const Team& team, long long rows) {
    if (PREFETCH) {
      wait_for_copies();
      stage = STAGES - 1 - stage;
      if (STORAGE == REGISTERS) move(lane);
      const long long next = group + GROUP_STEP;
      if (next < rows) request(matrices, Lane(row_of(next, team, rows), team), STAGES - 1 - stage);
    } else if (STORAGE != RELOAD) {
#pragma unroll
      for (int tensor = 0; tensor < TENSORS; ++tensor) {
#pragma unroll PASS_UNROLL
        for (int c = 0; c < CHUNKS; ++c) {
          if (!lane.has(c)) continue;
          if (STORAGE == REGISTERS) held[tensor][STORAGE == REGISTERS ? c : 0] = fetch(matrices[tensor], lane, c);
          else *place(0, tensor, c) = fetch(matrices[tensor], lane, c);
        }
      }
    }
  }
  DEVICE Vector get(const Matrices& matrices, const Lane& lane, int c, int tensor = 0) const {
    if (STORAGE == REGISTERS) return held[tensor][STORAGE == REGISTERS ? c : 0];
    if (STORAGE == SHARED) return *place(stage, tensor, c);
    return fetch(matrices[tensor], lane, c);
  }

 private:
  DEVICE void move(const Lane& lane) {
#pragma unroll
    for (int tensor = 0; tensor < TENSORS; ++tensor) {
#pragma unroll
      for (int c = 0; c < CHUNKS; ++c) {
        if (lane.has(c)) held[tensor][STORAGE == REGISTERS ? c : 0] = *place(0, tensor, c);
      }
    }
  }
};

struct Sum {
  static DEVICE float of(float a, float b) { return a + b; }
};
/// NaN wins: the maximum of a row with a NaN is NaN.
struct Max {
  static DEVICE float of(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float c;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
    return c;
#else
    return (a > b || a != a) ? a : b;
#endif
  }
};

#if CLUSTER > 1
/// What the blocks of a cluster tell each other arrives in two boxes in turn, each with a barrier that counts the senders.
/// A block sends for the second time from now only when all have sent for the next time, and so have read this one's.
DEVICE unsigned arrivals(int slot) {
  __shared__ unsigned long long barrier[2];
  return (unsigned)__cvta_generic_to_shared(&barrier[slot]);
}
DEVICE unsigned at_rank(unsigned local, unsigned rank) {
  unsigned remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(rank));
  return remote;
}

/// Sends `values`, which all threads of the block agree on, to every block of the cluster. Returns what each rank sent.
template <int N>
DEVICE const float (*exchange(const float (&values)[N], Team& team))[CLUSTER] {
  __shared__ __align__(16) float inbox[2][N][CLUSTER];
  const int slot = team.exchanges & 1;
  const unsigned parity = team.exchanges >> 1 & 1;
  ++team.exchanges;
  if (threadIdx.x < CLUSTER) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const unsigned to = at_rank((unsigned)__cvta_generic_to_shared(&inbox[slot][i][PART_INDEX]), threadIdx.x);
      asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(to), "f"(values[i]) : "memory");
    }
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(at_rank(arrivals(slot), threadIdx.x)) : "memory");
  }
  unsigned all = 0;
  while (!all) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(all)
        : "r"(arrivals(slot)), "r"(parity)
        : "memory");
  }
  return inbox[slot];
}
#endif

/// Before blocks of a cluster may speak to each other.
DEVICE void enter() {
#if CLUSTER > 1
  if (threadIdx.x < 2) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(arrivals(threadIdx.x)), "r"(CLUSTER) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/// Combines in a tree: among many small terms and a large one, a chain would round in the same direction every time.
template <class Op, int N>
DEVICE float tree(const float (&leaves)[N]) {
  float v[N];
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = leaves[i];
#pragma unroll
  for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) v[i] = Op::of(v[i], v[i + half]);
  }
  return v[0];
}

/// Combines `values` over the threads of the block that share a row; every thread gets the result.
template <class Op, int N>
DEVICE void block_reduce(float (&values)[N], Team& team) {
#pragma unroll
  for (int offset = (THREADS_PER_ROW < 32 ? THREADS_PER_ROW : 32) / 2; offset > 0; offset /= 2) {
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = Op::of(values[i], __shfl_xor_sync(0xffffffffu, values[i], offset));
  }
  if (WARPS_PER_ROW == 1) return;
  team.slot ^= 1;
  __shared__ __align__(16) float part[2][ROWS_PER_BLOCK][N][WARPS_PER_ROW];
  if (team.t % 32 == 0) {
#pragma unroll
    for (int i = 0; i < N; ++i) part[team.slot][team.r][i][team.t / 32] = values[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = tree<Op>(part[team.slot][team.r][i]);
}
template <class Op>
DEVICE float block_reduce(float value, Team& team) {
  float values[1] = {value};
  block_reduce<Op>(values, team);
  return values[0];
}
