// The first K of a row in the order of their values, then of their indices. The best elements of
// groups of threads give a bound: K groups have one that is no worse than it. Elements no worse
// than the bound are collected and ranked; if there are more than fit, the K-th of those that fit
// is the next bound.
typedef unsigned long long Key;  // order, then index: no two elements have the same
constexpr int MOST = RANKS < 128 ? 512 : 4 * RANKS;  // elements that are collected at most

/// An unsigned number that orders as the value does. NaN is larger than all, and zeros are equal.
template <class T>
DEVICE Bits order_of(const T& v) {
  constexpr Bits SIGN = (Bits)1 << (8 * sizeof(Bits) - 1);
  const Compared value = load<Compared>(v);
  Bits bits = *(const Bits*)&v;
  if ((Compared)0.5f == (Compared)0)
    bits ^= (Compared)-1 < (Compared)0 ? SIGN : 0;
  else
    bits = value != value ? ~(Bits)0 : bits > SIGN ? ~bits : bits | SIGN;
  return DESCENDING ? ~bits : bits;
}
#if WHOLE
// Rows are sorted by digits of eight bits, the lowest first (radix sort). A word holds 16 bits of
// the sort key above 16 bits of the index, so that only words move; values stay in shared memory.
constexpr int ITEMS = (TILE + BLOCK - 1) / BLOCK, WARPS = BLOCK / 32, DIGITS = 256;
template <class T>
struct Sorted {
  unsigned words[ITEMS * BLOCK];
  unsigned short counts[WARPS][DIGITS];
  int totals[WARPS];
  __align__(16) T values[TILE];
};
extern __shared__ __align__(16) unsigned char sorted_tile[];

/// Moves words to the position that one of their bytes gives, stably: a thread's words are 32 apart
/// among those of its warp.
template <class T>
DEVICE void sort_by_byte(Sorted<T>& in, const unsigned (&words)[ITEMS], int byte) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned short* const own = in.counts[warp];
  ((uint4*)own)[lane] = {};
  __syncwarp();
  int rank[ITEMS];  // rank among the words of the warp with this digit
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const unsigned digit = __byte_perm(words[item], 0, 0x4440 + byte);
    unsigned equal = 0xffffffffu;
#pragma unroll
    for (int bit = 1; bit < DIGITS; bit *= 2)
      asm volatile(R"({ .reg .pred set; .reg .b32 others;
        and.b32 others, %1, %2; setp.ne.b32 set, others, 0; vote.sync.ballot.b32 others, set, 0xffffffff;
        @!set not.b32 others, others; and.b32 %0, %0, others; })"
                   : "+r"(equal)
                   : "r"(digit), "r"(bit));
    rank[item] = own[digit] + __popc(equal & ((1u << lane) - 1));
    __syncwarp();
    if (equal >> lane == 1) own[digit] = rank[item] + 1;
    __syncwarp();
  }
  __syncthreads();
  int count[8], begin = 0;  // eight counters per thread, ordered by digit, then by warp
  const auto counter = [&](int i) -> unsigned short& {
    return in.counts[(threadIdx.x * 8 + i) % WARPS][(threadIdx.x * 8 + i) / WARPS];
  };
#pragma unroll
  for (int i = 0; i < 8; ++i) begin += count[i] = counter(i);
  const int upto = warp_scan<Sum>(begin);
  if (lane == 31) in.totals[warp] = upto;
  __syncthreads();
  begin = upto - begin;
  for (int other = 0; other < warp; ++other) begin += in.totals[other];
#pragma unroll
  for (int i = 0; i < 8; ++i) counter(i) = begin, begin += count[i];
  __syncthreads();
#pragma unroll
  for (int item = 0; item < ITEMS; ++item)
    in.words[own[__byte_perm(words[item], 0, 0x4440 + byte)] + rank[item]] = words[item];
  __syncthreads();
}
/// Calls use(number, index, value) for the tile's elements in order; the tile begins with element
/// `first` of the row.
template <class T, class Use>
DEVICE void sort_tile(const T* row, int first, const Use& use) {
  Sorted<T>& in = *(Sorted<T>*)sorted_tile;
  const int count = min(TILE, COLS - first),
            own = threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;
  for (int i = threadIdx.x * VEC; i < count; i += BLOCK * VEC) {
    Vector<T> v;
    read(v, row + first + i);
    write(in.values + i, v);
  }
  for (int i = threadIdx.x; i < ITEMS * BLOCK; i += BLOCK) in.words[i] = i;
  __syncthreads();
#pragma unroll 1
  for (int byte = 0; byte < max(2, (int)sizeof(Bits)); ++byte) {
    unsigned words[ITEMS];
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      words[item] = in.words[own + 32 * item];
      const unsigned index = words[item] & 0xffff;  // indices beyond the tile come last
      if (byte % 2 == 0)
        words[item] = (index < count ? order_of(in.values[index]) >> 8 * byte : 0xffffu) << 16 |
                      index;
    }
    sort_by_byte(in, words, 2 + byte % 2);
  }
  for (int i = threadIdx.x; i < count; i += BLOCK) {
    const int index = in.words[i] & 0xffff;
    use(first + i, first + index, in.values[index]);
  }
}
/// Merges element i of a row of sorted runs into runs of twice the length; calls found(rank, index,
/// value) where only one run is left.
template <class T, class Found>
DEVICE void merge(const T* row, const Key* from, Key* to, int i, int run, const Found& found) {
  const int other = min((i / run ^ 1) * run, COLS);
  int low = other, high = min(other + run, COLS);
  const Key own = from[i];
  while (low < high) {
    const int middle = (low + high) / 2;
    if (from[middle] < own)
      low = middle + 1;
    else
      high = middle;
  }
  const int rank = i / (2 * run) * (2 * run) + i % run + low - other;
  if (2 * run < COLS)
    to[rank] = own;
  else
    found(rank, (int)(unsigned)own, row[(unsigned)own]);
}
#else
DEVICE Key key_of(Compared v, int index) { return (Key)order_of(v) << 32 | (unsigned)index; }

/// Calls visit(value, index) for a thread's elements among `count`.
template <class T, class Visit>
DEVICE void each_element(const T* row, int count, const Visit& visit) {
#pragma unroll 4
  for (int column = threadIdx.x * VEC; column < count; column += BLOCK * VEC) {
    Vector<T> v;
    read(v, row + column);
#pragma unroll
    for (int lane = 0; lane < VEC; ++lane) visit(get<Compared>(v, lane), column + lane);
  }
}
// Groups of threads within a warp; fewer groups would give a weak bound.
constexpr int BESTS = BLOCK > 64 * RANKS ? BLOCK / 32 : 2 * RANKS;
constexpr int MEMBERS = BLOCK / BESTS;

/// The better of two elements. A NaN that is ordered last does not count beside a number.
struct Better {
  static DEVICE Compared of(Compared a, Compared b) {
    return DESCENDING ? maximum(a, b) : min(a, b);
  }
};
template <class T>
DEVICE int rank_among(T one, const T* all, int count) {
  int rank = 0;
#pragma unroll 8
  for (int i = 0; i < count; ++i) rank += all[i] < one;
  return rank;
}

/// Calls found(rank, index, value) for the row's first K, and perhaps for others.
template <class T, class Found>
DEVICE void first_of_row(const T* row, const Found& found) {
  __shared__ __align__(16) unsigned best[BESTS], worst;
  __shared__ __align__(16) Key chosen[MOST], last;
  __shared__ Compared first[BESTS];
  __shared__ int count, holder;
  Compared own[1] = {NEUTRAL};
  each_element(row, COLS, [&](Compared v, int) { own[0] = Better::of(own[0], v); });
  warp_reduce<Better, MEMBERS>(own);
  if (threadIdx.x % MEMBERS == 0)
    first[threadIdx.x / MEMBERS] = own[0], best[threadIdx.x / MEMBERS] = order_of(own[0]);
  if (threadIdx.x == 0) count = worst = 0, holder = BESTS;
  __syncthreads();
  const bool counts = threadIdx.x < BESTS && rank_among(best[threadIdx.x], best, BESTS) < K;
  if (counts) atomicMax(&worst, best[threadIdx.x]);
  __syncthreads();
  // of equal elements any will do
  if (counts && best[threadIdx.x] == worst) atomicMin(&holder, threadIdx.x);
  __syncthreads();
  const Compared limit = first[holder];
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
    found(rank, (int)(unsigned)chosen[i], row[(unsigned)chosen[i]]);
  }
}
#endif
