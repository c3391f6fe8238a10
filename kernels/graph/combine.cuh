// How two values become one.
struct Sum { template <class T> static DEVICE T of(T a, T b) { return a + b; } };
struct Prod { template <class T> static DEVICE T of(T a, T b) { return a * b; } };
struct Max { template <class T> static DEVICE T of(T a, T b) { return maximum(a, b); } };
struct Min { template <class T> static DEVICE T of(T a, T b) { return minimum(a, b); } };
struct Any { template <class T> static DEVICE T of(T a, T b) { return a | b; } };
struct All { template <class T> static DEVICE T of(T a, T b) { return a & b; } };

/// Combines N values, a power of two, in a tree. A loop over an array would lie in local memory from 16 on.
template <class Op, int N, class T> DEVICE T tree(const T* leaves) {
  if constexpr (N == 1) return leaves[0];
  else return Op::of(tree<Op, N / 2>(leaves), tree<Op, N / 2>(leaves + N / 2));
}

/// e^v, of sums of such: few instructions, or 16-bit rows would wait for them. What the product is rounded by counts for
/// less the smaller the term, and e^0 is 1.
DEVICE float exponential(float v) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v * 1.4426950408889634f));
  return r;
}
/// A sum of exponentials of distances from `top`, as one of distances from `other`. EQUALS: equal infinities are 0 apart.
template <bool EQUALS> DEVICE float scaled_sum(float sum, float top, float other) {
  if (EQUALS) return sum * exponential(top == other ? 0.0f : top - other);
  return sum * exponential(top - (other == __int_as_float(0xff800000) ? 0.0f : other));
}
/// Adds e^(x - top) of N elements to `sum`, where `top` becomes the largest of all so far.
template <bool EQUALS, int N> DEVICE void add_exponentials(float& top, float& sum, const float (&x)[N]) {
  const float largest = maximum(top, tree<Max, N>(x));
  sum = scaled_sum<EQUALS>(sum, top, largest);
#pragma unroll
  for (int i = 0; i < N; ++i) sum += scaled_sum<EQUALS>(1.0f, x[i], largest);
  top = largest;
}
