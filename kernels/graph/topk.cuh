// The first K of a row in the order of their values, then of their places. A bound comes from the best elements of groups of
// threads: K groups have one that is no worse than it. What is no worse than the bound is collected and ranked.
typedef unsigned long long Key;  // order, then place: no two elements have the same
constexpr int MOST = RANKS < 128 ? 512 : 4 * RANKS;  // that are collected; a row with more is searched K times

/// Numbers that are ordered as the values are. NaN is larger than all, and zeros are equal.
DEVICE unsigned ascending(float v) {
  const unsigned bits = __float_as_uint(v + 0.0f);
  return v != v ? 0xffffffffu : bits ^ ((int)bits < 0 ? 0xffffffffu : 0x80000000u);
}
DEVICE unsigned ascending(int v) { return (unsigned)v ^ 0x80000000u; }
DEVICE unsigned order_of(Compared v) { return DESCENDING ? ~ascending(v) : ascending(v); }
DEVICE Key key_of(Compared v, int place) { return (Key)order_of(v) << 32 | (unsigned)place; }

/// visit(value, place) of a thread's elements.
template <class T, class Visit> DEVICE void each_element(const T* row, const Visit& visit) {
#pragma unroll 4
  for (int column = threadIdx.x * VEC; column < COLS; column += BLOCK * VEC) {
    Vector<T> v;
    read(v, row + column);
#pragma unroll
    for (int lane = 0; lane < VEC; ++lane) visit(get<Compared>(v, lane), column + lane);
  }
}
#if WHOLE
/// found(rank, place) of the row's first K, from all of it in order.
template <class T, class Found> DEVICE void first_of_row(const T* row, const Found& found) {
  __shared__ Key keys[COLS];
  each_element(row, [&](Compared v, int place) { keys[place] = key_of(v, place); });
  sort_by_block(keys, COLS);
  for (int rank = threadIdx.x; rank < K; rank += BLOCK) found(rank, (int)(unsigned)keys[rank]);
}
#else
constexpr int BESTS = BLOCK > 64 * RANKS ? BLOCK / 32 : 2 * RANKS;  // groups of threads, each in a warp; fewer bound too little
constexpr int MEMBERS = BLOCK / BESTS;

/// What comes first; beside it no NaN counts that comes last.
struct Better { static DEVICE Compared of(Compared a, Compared b) { return DESCENDING ? maximum(a, b) : min(a, b); } };
template <class T> DEVICE int rank_among(T one, const T* all, int count) {
  int rank = 0;
#pragma unroll 8
  for (int i = 0; i < count; ++i) rank += all[i] < one;
  return rank;
}

/// found(rank, place) of the row's first K.
template <class T, class Found> DEVICE void first_of_row(const T* row, const Found& found) {
  __shared__ __align__(16) unsigned best[BESTS];
  __shared__ __align__(16) Key chosen[MOST];
  __shared__ Compared first[BESTS], bound;
  __shared__ unsigned worst;
  __shared__ int count;
  Compared own[1] = {NEUTRAL};
  each_element(row, [&](Compared v, int) { own[0] = Better::of(own[0], v); });
  warp_reduce<Better, MEMBERS>(own);
  if (threadIdx.x % MEMBERS == 0) first[threadIdx.x / MEMBERS] = own[0], best[threadIdx.x / MEMBERS] = order_of(own[0]);
  if (threadIdx.x == 0) count = worst = 0;
  __syncthreads();
  const bool counts = threadIdx.x < BESTS && rank_among(best[threadIdx.x], best, BESTS) < K;
  if (counts) atomicMax(&worst, best[threadIdx.x]);
  __syncthreads();
  if (counts && best[threadIdx.x] == worst) bound = first[threadIdx.x];  // equal ones are as good
  __syncthreads();
  const Compared limit = bound;
  each_element(row, [&](Compared v, int at) {
    if (DESCENDING ? v < limit : v > limit) return;
    const int to = atomicAdd(&count, 1);
    if (to < MOST) chosen[to] = key_of(v, at);
  });
  __syncthreads();
  if (count <= MOST) {
    for (int i = threadIdx.x; i < count; i += BLOCK) {
      const int rank = rank_among(chosen[i], chosen, count);
      if (rank < K) found(rank, (int)(unsigned)chosen[i]);
    }
    return;
  }
  Key last = 0;
  for (int rank = 0; rank < K; ++rank) {
    Key next[1] = {~0ull};
    each_element(row, [&](Compared v, int at) {
      const Key key = key_of(v, at);
      if ((rank == 0 || key > last) && key < next[0]) next[0] = key;
    });
    warp_reduce<Min, 32>(next);
    __syncthreads();
    if (threadIdx.x % 32 == 0) chosen[threadIdx.x / 32] = next[0];
    __syncthreads();
    last = ~0ull;
    for (int i = 0; i < BLOCK / 32; ++i) last = chosen[i] < last ? chosen[i] : last;
    if (threadIdx.x == 0) found(rank, (int)(unsigned)last);
  }
}
#endif
