// The first K of a row in the order of their values, then of their places. A bound comes from the best elements of groups of
// threads: K groups have one that is no worse than it. What is no worse than the bound is collected and ranked.
typedef unsigned long long Key;  // order, then place: no two elements have the same
constexpr int MOST = 1024;       // that are collected; a row with more is searched K times

/// Numbers that are ordered as the values are. NaN is larger than all, and zeros are equal.
DEVICE unsigned ascending(float v) {
  const unsigned bits = __float_as_uint(v + 0.0f);
  return v != v ? 0xffffffffu : bits ^ ((int)bits < 0 ? 0xffffffffu : 0x80000000u);
}
DEVICE unsigned ascending(int v) { return (unsigned)v ^ 0x80000000u; }

/// visit(order, place) of a thread's elements.
template <class T, class Visit> DEVICE void each_element(const T* row, const Visit& visit) {
#pragma unroll 4
  for (int column = threadIdx.x * VEC; column < COLS; column += BLOCK * VEC) {
    Vector<T> v;
    read(v, row + column);
#pragma unroll
    for (int lane = 0; lane < VEC; ++lane) {
      const unsigned order = ascending(get<Compared>(v, lane));
      visit(DESCENDING ? ~order : order, column + lane);
    }
  }
}
#if WHOLE
/// found(rank, place) of the row's first K, from all of it in order.
template <class T, class Found> DEVICE void first_of_row(const T* row, const Found& found) {
  __shared__ Key keys[COLS];
  each_element(row, [&](unsigned order, int place) { keys[place] = (Key)order << 32 | (unsigned)place; });
  sort_by_block(keys, COLS);
  for (int rank = threadIdx.x; rank < K; rank += BLOCK) found(rank, (int)(unsigned)keys[rank]);
}
#else
constexpr int BESTS = BLOCK > 64 * RANKS ? BLOCK / 32 : 2 * RANKS;  // groups of threads, each in a warp; fewer bound too little
constexpr int MEMBERS = BLOCK / BESTS;

DEVICE int rank_among(Key key, const Key* keys, int count) {
  int rank = 0;
  for (int i = 0; i < count; ++i) rank += keys[i] < key;
  return rank;
}

/// found(rank, place) of the row's first K.
template <class T, class Found> DEVICE void first_of_row(const T* row, const Found& found) {
  __shared__ Key best[BESTS], chosen[MOST], bound;
  __shared__ int count;
  unsigned order = 0xffffffffu, place = 0xffffffffu;
  each_element(row, [&](unsigned o, int at) {
    if (o < order) order = o, place = at;
  });
  Key own[1] = {(Key)order << 32 | place};
  warp_reduce<Min, MEMBERS>(own);
  if (threadIdx.x % MEMBERS == 0) best[threadIdx.x / MEMBERS] = own[0];
  if (threadIdx.x == 0) count = 0, bound = ~0ull;
  __syncthreads();
  if (threadIdx.x < BESTS && rank_among(best[threadIdx.x], best, BESTS) == K - 1) bound = best[threadIdx.x];
  __syncthreads();
  const Key most = bound;
  const unsigned limit = most >> 32;
  each_element(row, [&](unsigned o, int at) {
    const Key key = (Key)o << 32 | (unsigned)at;
    if (o > limit || key > most) return;
    const int to = atomicAdd(&count, 1);
    if (to < MOST) chosen[to] = key;
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
    each_element(row, [&](unsigned o, int at) {
      const Key key = (Key)o << 32 | (unsigned)at;
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
