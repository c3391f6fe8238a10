// Shared by the baseline kernels of graphs: reductions by one block of 256 threads, and of few
// elements by one thread. A thread adds its elements in order, but loads several of them before it
// uses the first.
constexpr int PLAIN_THREADS = 256, PLAIN_AHEAD = 16, PLAIN_FEW = 32;

/// combine_NAME of two values; block_NAME of element(0) … element(depth - 1), which all threads
/// get; few_NAME the same of at most PLAIN_FEW, in the same order, for the calling thread.
#define BLOCK_REDUCTION(name, combine)                                                        \
  template <class T>                                                                          \
  DEVICE T combine_##name(T a, T b) {                                                         \
    return combine;                                                                           \
  }                                                                                           \
  template <class T, class Element>                                                           \
  DEVICE T block_##name(long long depth, const Element& element) {                            \
    __shared__ T part[PLAIN_THREADS];                                                         \
    const int t = threadIdx.x;                                                                \
    const int first = t < depth ? t : 0;                                                      \
    T a = (T)element(first);                                                                  \
    T next[PLAIN_AHEAD];                                                                      \
    long long k = first + PLAIN_THREADS;                                                      \
    for (; k + (PLAIN_AHEAD - 1) * PLAIN_THREADS < depth; k += PLAIN_AHEAD * PLAIN_THREADS) { \
      _Pragma("unroll") for (int i = 0; i < PLAIN_AHEAD; ++i)                                 \
          next[i] = (T)element(k + i * PLAIN_THREADS);                                        \
      _Pragma("unroll") for (int i = 0; i < PLAIN_AHEAD; ++i) a = combine_##name(a, next[i]); \
    }                                                                                         \
    for (; k < depth; k += PLAIN_THREADS) a = combine_##name(a, (T)element(k));               \
    part[t] = a;                                                                              \
    __syncthreads();                                                                          \
    const int width = depth < PLAIN_THREADS ? (int)depth : PLAIN_THREADS;                     \
    for (int half = PLAIN_THREADS / 2; half > 0; half /= 2) {                                 \
      if (t < half && t + half < width) part[t] = combine_##name(part[t], part[t + half]);    \
      __syncthreads();                                                                        \
    }                                                                                         \
    a = part[0];                                                                              \
    __syncthreads();                                                                          \
    return a;                                                                                 \
  }                                                                                           \
  template <class T, int DEPTH, class Element>                                                \
  DEVICE T few_##name(const Element& element) {                                               \
    T part[DEPTH];                                                                            \
    _Pragma("unroll") for (int k = 0; k < DEPTH; ++k) part[k] = (T)element(k);                \
    _Pragma("unroll") for (int half = PLAIN_FEW / 2; half > 0; half /= 2) {                   \
      _Pragma("unroll") for (int t = 0; t + half < DEPTH && t < half; ++t)                    \
          part[t] = combine_##name(part[t], part[t + half]);                                  \
    }                                                                                         \
    return part[0];                                                                           \
  }
BLOCK_REDUCTION(sum, a + b)
BLOCK_REDUCTION(prod, a* b)
BLOCK_REDUCTION(max, maximum(a, b))
BLOCK_REDUCTION(min, minimum(a, b))
BLOCK_REDUCTION(any, a | b)
BLOCK_REDUCTION(all, a& b)

/// NaN is larger than all.
template <class T>
DEVICE bool less(T a, T b) {
  return b != b ? a == a : a < b;
}

/// True if element `w` at index `j` stands before element `v` at index `k` in stable order.
template <bool DESCENDING, class T>
DEVICE bool comes_before(T w, long long j, T v, long long k) {
  const bool before = DESCENDING ? less(v, w) : less(w, v);
  const bool after = DESCENDING ? less(w, v) : less(v, w);
  return before || (!after && j < k);
}

/// The index of element `k` of `depth` in stable order; for elements behind the first `count`, only
/// that they are behind.
template <bool DESCENDING, class Element>
DEVICE long long rank_of(long long k, long long depth, long long count, const Element& element) {
  const auto v = element(k);
  long long rank = 0;
  for (long long j = 0; j < depth && rank < count; ++j) {
    rank += comes_before<DESCENDING>(element(j), j, v, k);
  }
  return rank;
}

/// Writes the indices 0 … depth - 1 in the stable order of their elements. All threads of the block
/// take part. The comparisons are those of Batcher's merge exchange (Knuth, The Art of Computer
/// Programming, volume 3, section 5.2.2, algorithm M): each pass compares disjoint pairs at the
/// distance d, and about log2(depth)² / 2 passes sort any number of elements.
template <bool DESCENDING, class Element, class Place>
DEVICE void sort_places(long long depth, const Element& element, const Place& place) {
  for (long long k = threadIdx.x; k < depth; k += blockDim.x) place(k) = k;
  long long top = 1;
  while (top < depth) top *= 2;
  for (long long p = top / 2; p > 0; p /= 2) {
    long long q = top / 2, r = 0, d = p;
    while (true) {
      __syncthreads();
      for (long long i = threadIdx.x; i + d < depth; i += blockDim.x) {
        if ((i & p) != r) continue;
        const auto a = place(i), b = place(i + d);
        if (!comes_before<DESCENDING>(element(b), b, element(a), a)) continue;
        place(i) = b;
        place(i + d) = a;
      }
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
  __syncthreads();
}

/// The index of the first largest (smallest) element; NaN beats all.
template <bool LARGEST, class Element>
DEVICE long long place_of(long long depth, const Element& element) {
  long long place = 0;
  auto best = element(0);
  for (long long k = 1; k < depth; ++k) {
    const auto v = element(k);
    if (best == best && (v != v || (LARGEST ? v > best : v < best))) {
      best = v;
      place = k;
    }
  }
  return place;
}

/// The power of two of a number, biased as in a float; of small ones at least LEAST.
template <int LEAST = 0>
DEVICE int power_of(float x) {
  return max((int)(__float_as_uint(x) >> 23 & 255), LEAST);
}
/// sum + a(0) · b(0) + … bit for bit as Hopper's tensor cores add up to 32 products of 8-bit
/// floats: sum and products are cut off 13 digits below the largest power of two, a product's being
/// that of its factors, and so is what comes of it. LEAST: the powers of the smallest normal
/// numbers.
template <int LEAST_A, int LEAST_B, class A, class B>
DEVICE float add_cut(float sum, int count, const A& a, const B& b) {
  int largest = max(power_of(sum), 64);
  for (int k = 0; k < count; ++k) {
    if (a(k) * b(k) != 0)
      largest = max(largest, power_of<LEAST_A>(a(k)) + power_of<LEAST_B>(b(k)) - 127);
  }
  const float unit = __uint_as_float((min(largest, 254) - 13) << 23),
              per_unit = __uint_as_float((254 + 13 - min(largest, 254)) << 23);
  sum = truncf(sum * per_unit);
  for (int k = 0; k < count; ++k) sum += truncf((float)a(k) * (float)b(k) * per_unit);
  return __uint_as_float(__float_as_uint(sum * unit) & ~0x3ffu);
}
template <class Sum, int N>
DEVICE void take_over(Sum (&all)[N][N], Sum (&sums)[N][N]) {
#pragma unroll
  for (int i = 0; i < N * N; ++i) {
    all[i / N][i % N] += sums[i / N][i % N];
    sums[i / N][i % N] = 0;
  }
}

/// result[b, m, n] = sum over k of left(b, m, k) · right(b, k, n): 64 × 64 results of a block, what
/// is loaded serves them all, and every result is summed in the order of k. *_BY_DEPTH: an
/// operand's neighbours follow each other along k. SPARSE: products with a factor of exactly zero
/// count nothing; where all factors are finite and EXACT products are not rounded, adding them is
/// the same. LEAST_A and LEAST_B, where they are not 0: as tensor cores sum products of 8-bit
/// floats, 256 of them before they are added to a sum that keeps all digits.
template <class Sum, bool SPARSE, bool EXACT, int LEAST_A, int LEAST_B, bool LEFT_BY_DEPTH,
          bool RIGHT_BY_DEPTH, class Left, class Right, class Store>
DEVICE void contract_tiles(long long batches, long long rows, long long columns, long long depth,
                           const Left& left, const Right& right, const Store& store_at) {
  constexpr bool CUT = LEAST_A > 0;
  constexpr int TILE = 64, STEP = CUT ? 32 : 16, EACH = 4;
  __shared__ Sum a[STEP][TILE + 1], b[STEP][TILE + 1];
  const long long across = (columns + TILE - 1) / TILE, tiles = (rows + TILE - 1) / TILE * across;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  for (long long tile = blockIdx.x; tile < batches * tiles; tile += gridDim.x) {
    const long long batch = tile / tiles, row = tile % tiles / across * TILE,
                    column = tile % tiles % across * TILE;
    Sum sums[EACH][EACH] = {}, before[EACH][EACH] = {};
    for (long long first = 0; first < depth; first += STEP) {
      if (CUT && first % 256 == 0) take_over(before, sums);
      bool finite = true;
      for (int i = threadIdx.x; i < STEP * TILE; i += PLAIN_THREADS) {
        const int deep = i % STEP, broad = i / STEP, wide = i % TILE, low = i / TILE;
        const int ka = LEFT_BY_DEPTH ? deep : low, m = LEFT_BY_DEPTH ? broad : wide;
        const int kb = RIGHT_BY_DEPTH ? deep : low, n = RIGHT_BY_DEPTH ? broad : wide;
        const Sum l = first + ka < depth && row + m < rows ? left(batch, row + m, first + ka)
                                                           : (Sum)0;
        const Sum r = first + kb < depth && column + n < columns
                          ? right(batch, first + kb, column + n)
                          : (Sum)0;
        a[ka][m] = l, b[kb][n] = r;
        finite = finite && l - l == 0 && r - r == 0;
      }
      const bool careful = SPARSE && (__syncthreads_or(!finite) || !EXACT);
      if (!SPARSE) __syncthreads();
      const int count = depth - first < STEP ? (int)(depth - first) : STEP;
      const auto add_all = [&](const auto& add) {
        for (int k = 0; k < count; ++k) {
#pragma unroll
          for (int i = 0; i < EACH; ++i) {
#pragma unroll
            for (int j = 0; j < EACH; ++j) add(sums[i][j], a[k][y + 16 * i], b[k][x + 16 * j]);
          }
        }
      };
      if (CUT) {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
#pragma unroll
          for (int j = 0; j < EACH; ++j)
            sums[i][j] = add_cut<LEAST_A, LEAST_B>(
                sums[i][j], count, [&](int k) { return a[k][y + 16 * i]; },
                [&](int k) { return b[k][x + 16 * j]; });
        }
      } else if (careful)
        add_all([](Sum& sum, Sum l, Sum r) { sum = sum + (l == 0 || r == 0 ? (Sum)0 : l * r); });
      else
        add_all([](Sum& sum, Sum l, Sum r) { sum = sum + l * r; });
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
#pragma unroll
      for (int j = 0; j < EACH; ++j) {
        const long long m = row + y + 16 * i, n = column + x + 16 * j;
        if (m < rows && n < columns)
          store_at(batch, m, n, CUT ? before[i][j] + sums[i][j] : sums[i][j]);
      }
    }
  }
}
