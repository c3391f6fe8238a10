// Last-axis reductions of graphs.
constexpr int CHUNKS = (COLS + THREADS_PER_ROW * VEC - 1) / (THREADS_PER_ROW * VEC);
constexpr bool EXACT = COLS % (THREADS_PER_ROW * VEC) == 0;  // no thread reads beyond its row

/// e^v as a term of a sum: few instructions, or 16-bit rows would wait for them. The rounding of
/// the product matters less the smaller the term is, and e^0 is exactly 1.
DEVICE float exponential(float v) { return power_of_two(v * 1.4426950408889634f); }
/// Converts a sum of exponentials of distances from `top` into one of distances from `other`.
/// EQUALS: the distance of equal infinities is 0.
template <bool EQUALS>
DEVICE float scaled_sum(float sum, float top, float other) {
  if (EQUALS) return sum * exponential(top == other ? 0.0f : top - other);
  return sum * exponential(top - (other == __int_as_float(0xff800000) ? 0.0f : other));
}
/// Adds e^(x - top) of N elements to `sum`, where `top` becomes the largest element so far.
template <bool EQUALS, int N>
DEVICE void add_exponentials(float& top, float& sum, const float (&x)[N]) {
  const float largest = maximum(top, tree<Max, N>(x));
  sum = scaled_sum<EQUALS>(sum, top, largest);
#pragma unroll
  for (int i = 0; i < N; ++i) sum += scaled_sum<EQUALS>(1.0f, x[i], largest);
  top = largest;
}

/// The row that this thread serves in the group that begins with row `group`: its own, or the
/// group's first row where its own does not exist.
DEVICE long long row_of(long long group, long long rows) {
  const long long row = group + threadIdx.x / THREADS_PER_ROW;
  return row < rows ? row : group;
}

/// Copies `count` neighbouring elements to shared memory in pieces of 16 bytes; both addresses are
/// multiples of 16 bytes.
template <class T>
DEVICE void stage(T* to, const T* from, int count) {
  constexpr int PIECE = 16 / sizeof(T);
  for (int i = threadIdx.x * PIECE; i + PIECE <= count; i += BLOCK * PIECE)
    copy_async<16>(shared_address(to + i), from + i);
  for (int i = count / PIECE * PIECE + threadIdx.x; i < count; i += BLOCK) to[i] = from[i];
}
