// What plain kernels share: reductions by one block of 256 threads.
constexpr int PLAIN_THREADS = 256;

/// Combines element(0) … element(depth - 1); thread 0 has the result.
#define BLOCK_REDUCTION(name, combine)                                            \
  template <class T, class Element> DEVICE T block_##name(long long depth, const Element& element) { \
    __shared__ T part[PLAIN_THREADS];                                             \
    const int t = threadIdx.x;                                                    \
    const int first = t < depth ? t : 0;                                          \
    T a = (T)element(first);                                                      \
    for (long long k = first + PLAIN_THREADS; k < depth; k += PLAIN_THREADS) {    \
      const T b = (T)element(k);                                                  \
      a = combine;                                                                \
    }                                                                             \
    part[t] = a;                                                                  \
    __syncthreads();                                                              \
    const int width = depth < PLAIN_THREADS ? (int)depth : PLAIN_THREADS;         \
    for (int half = PLAIN_THREADS / 2; half > 0; half /= 2) {                     \
      if (t < half && t + half < width) {                                         \
        const T b = part[t + half];                                               \
        a = part[t];                                                              \
        part[t] = combine;                                                        \
      }                                                                           \
      __syncthreads();                                                            \
    }                                                                             \
    a = part[0];                                                                  \
    __syncthreads();                                                              \
    return a;                                                                     \
  }
BLOCK_REDUCTION(sum, a + b)
BLOCK_REDUCTION(prod, a * b)
BLOCK_REDUCTION(max, maximum(a, b))
BLOCK_REDUCTION(min, minimum(a, b))
BLOCK_REDUCTION(any, a | b)
BLOCK_REDUCTION(all, a & b)

template <class T> DEVICE T combine_sum(T a, T b) { return a + b; }
template <class T> DEVICE T combine_prod(T a, T b) { return a * b; }
template <class T> DEVICE T combine_max(T a, T b) { return maximum(a, b); }
template <class T> DEVICE T combine_min(T a, T b) { return minimum(a, b); }

/// NaN is larger than all.
template <class T> DEVICE bool less(T a, T b) { return b != b ? a == a : a < b; }

/// Where element `k` of `depth` stands in stable order.
template <bool DESCENDING, class Element> DEVICE long long rank_of(long long k, long long depth, const Element& element) {
  const auto v = element(k);
  long long rank = 0;
  for (long long j = 0; j < depth; ++j) {
    const auto w = element(j);
    const bool before = DESCENDING ? less(v, w) : less(w, v);
    const bool after = DESCENDING ? less(w, v) : less(v, w);
    rank += before || (!after && j < k);
  }
  return rank;
}

/// The place of the first largest (smallest) element; NaN beats all.
template <bool LARGEST, class Element> DEVICE long long place_of(long long depth, const Element& element) {
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
