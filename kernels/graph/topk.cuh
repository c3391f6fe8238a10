// The first K of a row in the order of their values, then of their places. A bound comes from the best elements of groups of
// threads: K groups have one that is no worse than it. What is no worse than the bound is collected and ranked; where that is
// more than there is room for, the last of the first K among those that there was room for is the next bound.
typedef unsigned long long Key;  // order, then place: no two elements have the same
constexpr int MOST = RANKS < 128 ? 512 : 4 * RANKS;  // that are collected

/// Numbers that are ordered as the values are. NaN is larger than all, and zeros are equal.
DEVICE unsigned ascending(float v) {
  const unsigned bits = __float_as_uint(v + 0.0f);
  return v != v ? 0xffffffffu : bits ^ ((int)bits < 0 ? 0xffffffffu : 0x80000000u);
}
DEVICE unsigned ascending(int v) { return (unsigned)v ^ 0x80000000u; }
DEVICE unsigned order_of(Compared v) { return DESCENDING ? ~ascending(v) : ascending(v); }
DEVICE Key key_of(Compared v, int place) { return (Key)order_of(v) << 32 | (unsigned)place; }

/// visit(value, place) of a thread's elements among `count`.
template <class T, class Visit> DEVICE void each_element(const T* row, int count, const Visit& visit) {
#pragma unroll 4
  for (int column = threadIdx.x * VEC; column < count; column += BLOCK * VEC) {
    Vector<T> v;
    read(v, row + column);
#pragma unroll
    for (int lane = 0; lane < VEC; ++lane) visit(get<Compared>(v, lane), column + lane);
  }
}
#if WHOLE
/// use(number, key) of the tile's elements in order, which begins with element `first` of the row.
template <class T, class Use> DEVICE void sort_tile(const T* row, int first, const Use& use) {
  __shared__ Key keys[TILE];
  const int count = min(TILE, COLS - first);
  each_element(row + first, count, [&](Compared v, int place) { keys[place] = key_of(v, first + place); });
  sort_by_block(keys, count);
  for (int i = threadIdx.x; i < count; i += BLOCK) use(first + i, keys[i]);
}
/// found(rank, place) of the row's first K.
template <class T, class Found> DEVICE void first_of_row(const T* row, const Found& found) {
  sort_tile(row, 0, [&](int rank, Key key) {
    if (rank < K) found(rank, (int)(unsigned)key);
  });
}
/// Element i of a row of sorted runs to its place in twice as long ones; found(rank, place) of the first K where there is one.
template <class Found> DEVICE void merge(const Key* from, Key* to, int i, int run, const Found& found) {
  const int other = min((i / run ^ 1) * run, COLS);
  int low = other, high = min(other + run, COLS);
  const Key own = from[i];
  while (low < high) {
    const int middle = (low + high) / 2;
    if (from[middle] < own) low = middle + 1;
    else high = middle;
  }
  const int rank = i / (2 * run) * (2 * run) + i % run + low - other;
  if (2 * run < COLS) to[rank] = own;
  else if (rank < K) found(rank, (int)(unsigned)own);
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
  __shared__ __align__(16) unsigned best[BESTS], worst;
  __shared__ __align__(16) Key chosen[MOST], last;
  __shared__ Compared first[BESTS], bound;
  __shared__ int count;
  Compared own[1] = {NEUTRAL};
  each_element(row, COLS, [&](Compared v, int) { own[0] = Better::of(own[0], v); });
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
  const auto collect = [&](Key most) {
    each_element(row, COLS, [&](Compared v, int at) {
      if (DESCENDING ? v < limit : v > limit) return;
      const Key key = key_of(v, at);
      const int to = key <= most ? atomicAdd(&count, 1) : MOST;
      if (to < MOST) chosen[to] = key;
    });
    __syncthreads();
  };
  collect(~0ull);
  while (count > MOST) {
    for (int i = threadIdx.x; i < MOST; i += BLOCK)
      if (rank_among(chosen[i], chosen, MOST) == K - 1) last = chosen[i];
    __syncthreads();
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    collect(last);
  }
  for (int i = threadIdx.x; i < count; i += BLOCK) {
    const int rank = rank_among(chosen[i], chosen, count);
    if (rank < K) found(rank, (int)(unsigned)chosen[i]);
  }
}
#endif
