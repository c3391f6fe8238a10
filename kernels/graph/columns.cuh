// Outer-axis reductions. An axis of the input is reduced or kept (not reduced); an element of the
// result is a kept element. A block has KEPT_THREADS neighbouring threads along the kept axes, each
// with LANES neighbouring kept elements, and REDUCED_THREADS that divide the reduction of each.
constexpr int BLOCK = KEPT_THREADS * REDUCED_THREADS;

/// The value of the lane whose number differs in the bit `offset`.
template <class T>
DEVICE T shuffled(const T& value, int offset) {
  InWords<T> moved = {value};
#pragma unroll
  for (int i = 0; i < InWords<T>::COUNT; ++i)
    moved.word[i] = __shfl_xor_sync(0xffffffffu, moved.word[i], offset);
  return moved.value;
}

/// Combines every lane over COUNT threads of a warp, STRIDE apart; all get the result.
template <class Op, int COUNT, int STRIDE = 1, class T>
DEVICE void warp_combine(T (&value)[LANES], int reduced_thread) {
#pragma unroll
  for (int offset = COUNT / 2; offset > 0; offset /= 2) {
#pragma unroll
    for (int lane = 0; lane < LANES; ++lane) {
      const T other = shuffled(value[lane], offset * STRIDE);
      value[lane] = reduced_thread & offset ? Op::of(other, value[lane])
                                            : Op::of(value[lane], other);
    }
  }
}

/// Combines every lane over the threads of one kept thread, in an order that does not depend on
/// time; all get the result.
template <class Op, class T>
DEVICE void block_combine(T (&value)[LANES], int kept_thread, int reduced_thread) {
  constexpr int STRIDE = KEPT_INSIDE ? KEPT_THREADS : 1;  // between threads that reduce together
  constexpr int IN_WARP = STRIDE >= 32                    ? 1
                          : 32 / STRIDE < REDUCED_THREADS ? 32 / STRIDE
                                                          : REDUCED_THREADS;
  constexpr int GROUPS = REDUCED_THREADS / IN_WARP;
  warp_combine<Op, IN_WARP, STRIDE>(value, reduced_thread);
  if (GROUPS == 1) return;
  __shared__ T part[GROUPS][LANES][KEPT_THREADS];
  const int group = reduced_thread / IN_WARP;
#pragma unroll
  for (int lane = 0; lane < LANES; ++lane) {
    // one thread alone writes, because several might write different NaNs
    if (reduced_thread % IN_WARP == 0) part[group][lane][kept_thread] = value[lane];
  }
  __syncthreads();
#pragma unroll
  for (int half = GROUPS / 2; half > 0 && KEPT_THREADS > 1; half /= 2) {
    if (reduced_thread < half) {
#pragma unroll
      for (int lane = 0; lane < LANES; ++lane)
        part[reduced_thread][lane][kept_thread] = Op::of(
            part[reduced_thread][lane][kept_thread],
            part[reduced_thread + half][lane][kept_thread]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int lane = 0; lane < LANES; ++lane)
    value[lane] = part[KEPT_THREADS > 1 ? 0 : reduced_thread % GROUPS][lane][kept_thread];
  __syncthreads();
  // Every warp combines the groups itself, which saves a barrier per halving.
  if (KEPT_THREADS == 1) warp_combine<Op, GROUPS>(value, reduced_thread);
}

/// An element and its index along the reduced axis.
template <class T>
struct Place {
  T value;
  int at;
};
/// The largest or smallest element or a NaN, and where several are equal the first.
template <bool LARGEST>
struct FirstExtreme {
  template <class T>
  static DEVICE Place<T> of(const Place<T>& a, const Place<T>& b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool equal = a_nan ? b_nan : a.value == b.value,
               beyond = LARGEST ? b.value > a.value : b.value < a.value;
    return (equal ? b.at < a.at : !a_nan && (b_nan || beyond)) ? b : a;
  }
};

/// The same for a `b` whose index is larger than that of `a`, in a third of the instructions.
template <bool LARGEST>
struct LaterExtreme {
  template <class T>
  static DEVICE Place<T> of(const Place<T>& a, const Place<T>& b) {
    // Comparisons with a NaN are false: `b` is beyond `a` if it is a NaN, and beyond no NaN.
    const bool within = LARGEST ? b.value <= a.value : b.value >= a.value;
    return !within && a.value == a.value ? b : a;
  }
};

/// A value that a block publishes for other blocks that run at the same time. Each 64-bit word
/// holds 32 bits of the value and a flag in bit 32, written and read together, so that no fence is
/// needed. The flags are cleared before the kernel.
template <class T>
struct Published {
  unsigned long long word[InWords<T>::COUNT];
};
template <class T>
DEVICE void publish(Published<T>* to, const T& value) {
  const InWords<T> words = {value};
#pragma unroll
  for (int i = 0; i < InWords<T>::COUNT; ++i)
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to->word + i),
                 "l"(1ull << 32 | words.word[i])
                 : "memory");
}
/// True if the value was published; then `value` holds it. All words are loaded before the first is
/// used: one after the other, each would take a round trip to L2.
template <class T>
DEVICE bool try_read(const Published<T>* from, T& value) {
  InWords<T> words = {};
  unsigned there = 1;
#pragma unroll
  for (int i = 0; i < InWords<T>::COUNT; ++i) {
    unsigned long long seen;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                 : "=l"(seen)
                 : "l"(from->word + i)
                 : "memory");
    words.word[i] = (unsigned)seen;
    there &= (unsigned)(seen >> 32);
  }
  value = words.value;
  return there;
}
/// Keeps the compiler from moving the load of `v` to a later place.
template <class T>
DEVICE void pin(T& v) {
  if constexpr (sizeof(T) == 2) asm volatile("" : "+h"((unsigned short&)v));
  if constexpr (sizeof(T) == 4) asm volatile("" : "+r"((unsigned&)v));
  if constexpr (sizeof(T) == 8) asm volatile("" : "+l"((unsigned long long&)v));
}

/// a / b, where b is a count. A full float32 division has a branch, which would keep loads from
/// moving ahead of it.
DEVICE float quotient(float a, float b) { return __fdividef(a, b); }
DEVICE double quotient(double a, double b) { return a / b; }

/// Count, mean, and m2, the sum of squared distances from the mean (Welford; combined as by Chan,
/// Golub and LeVeque 1979).
template <class T>
struct Moments {
  T count, mean, m2;
  /// Adds a value; `share` is 1 / (count + 1). The count is the same for all lanes, so that the
  /// caller keeps it.
  DEVICE void add(T value, T share) {
    const T distance = value - mean;
    mean += distance * share;
    m2 += distance * (value - mean);
  }
};
struct MergeMoments {
  template <class T>
  static DEVICE Moments<T> of(const Moments<T>& a, const Moments<T>& b) {
    const T count = a.count + b.count;
    const T share = count > 0 ? quotient(b.count, count) : T(0);
    const T distance = b.mean - a.mean;
    return {count, a.mean + distance * share, a.m2 + b.m2 + distance * distance * a.count * share};
  }
};

/// Combines the moments of `count` elements over the threads that reduce one kept element. Of a
/// thread's GATHERED moments, every LANES-th belong together. Two sums over the block take a tenth
/// of the instructions of merging moments at every step.
template <class T, int GATHERED>
DEVICE void block_moments(const Moments<T> (&gathered)[GATHERED], T count, Moments<T> (&all)[LANES],
                          int kept_thread, int reduced_thread) {
  T mean[LANES] = {}, m2[LANES] = {};
#pragma unroll
  for (int i = 0; i < GATHERED; ++i) mean[i % LANES] += gathered[i].count * gathered[i].mean;
  block_combine<Sum>(mean, kept_thread, reduced_thread);
#pragma unroll
  for (int lane = 0; lane < LANES; ++lane) mean[lane] = quotient(mean[lane], count);
#pragma unroll
  for (int i = 0; i < GATHERED; ++i) {
    const T distance = gathered[i].mean - mean[i % LANES];
    m2[i % LANES] += gathered[i].m2 + gathered[i].count * distance * distance;
  }
  block_combine<Sum>(m2, kept_thread, reduced_thread);
#pragma unroll
  for (int lane = 0; lane < LANES; ++lane) all[lane] = {count, mean[lane], m2[lane]};
}
