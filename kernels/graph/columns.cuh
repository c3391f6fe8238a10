// Reductions over the threads of a block that share kept elements: KEPT_THREADS of them side by
// side, each with LANES neighbouring elements, and REDUCED_THREADS that divide what is reduced.
constexpr int BLOCK = KEPT_THREADS * REDUCED_THREADS;

/// What the lane has whose number differs in bit `offset`.
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
    // one of several NaNs
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
  // every warp for itself: one barrier less for each half
  if (KEPT_THREADS == 1) warp_combine<Op, GROUPS>(value, reduced_thread);
}

/// A value that blocks which run at once tell each other: each word beside a mark that it is there,
/// written and read together, so that nobody needs a fence. The marks are cleared before.
template <class T>
struct Told {
  unsigned long long word[InWords<T>::COUNT];
};
template <class T>
DEVICE void tell(Told<T>* to, const T& value) {
  const InWords<T> told = {value};
#pragma unroll
  for (int i = 0; i < InWords<T>::COUNT; ++i)
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to->word + i),
                 "l"(1ull << 32 | told.word[i])
                 : "memory");
}
/// Has a value been told? Its words are asked for together: one after the other, each would take a
/// round to L2.
template <class T>
DEVICE bool was_told(const Told<T>* from, T& value) {
  InWords<T> told = {};
  unsigned there = 1;
#pragma unroll
  for (int i = 0; i < InWords<T>::COUNT; ++i) {
    unsigned long long seen;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                 : "=l"(seen)
                 : "l"(from->word + i)
                 : "memory");
    told.word[i] = (unsigned)seen;
    there &= (unsigned)(seen >> 32);
  }
  value = told.value;
  return there;
}
/// Keeps the compiler from asking for a value later than here.
template <class T>
DEVICE void pin(T& v) {
  if constexpr (sizeof(T) == 2) asm volatile("" : "+h"((unsigned short&)v));
  if constexpr (sizeof(T) == 4) asm volatile("" : "+r"((unsigned&)v));
  if constexpr (sizeof(T) == 8) asm volatile("" : "+l"((unsigned long long&)v));
}

/// Of a count. Divided in full, it would take a branch that keeps loads from moving ahead of it.
DEVICE float quotient(float a, float b) { return __fdividef(a, b); }
DEVICE double quotient(double a, double b) { return a / b; }

/// Count, mean and sum of squared distances from it (Welford; combined as by Chan, Golub and
/// LeVeque 1979).
template <class T>
struct Moments {
  T count, mean, spread;
  /// Adds a value; `share` is one over the count with it. The count is the same for all lanes:
  /// whoever adds keeps it.
  DEVICE void add(T value, T share) {
    const T distance = value - mean;
    mean += distance * share;
    spread += distance * (value - mean);
  }
};
struct Merged {
  template <class T>
  static DEVICE Moments<T> of(const Moments<T>& a, const Moments<T>& b) {
    const T count = a.count + b.count;
    const T share = count > 0 ? quotient(b.count, count) : T(0);
    const T distance = b.mean - a.mean;
    return {count, a.mean + distance * share,
            a.spread + b.spread + distance * distance * a.count * share};
  }
};

/// Moments of `count` elements that the threads of one kept thread have gathered; every LANES-th of
/// a thread's belong together. Two sums over the block take a tenth of the instructions of merging
/// at every step.
template <class T, int GATHERED>
DEVICE void block_moments(const Moments<T> (&gathered)[GATHERED], T count, Moments<T> (&all)[LANES],
                          int kept_thread, int reduced_thread) {
  T mean[LANES] = {}, spread[LANES] = {};
#pragma unroll
  for (int i = 0; i < GATHERED; ++i) mean[i % LANES] += gathered[i].count * gathered[i].mean;
  block_combine<Sum>(mean, kept_thread, reduced_thread);
#pragma unroll
  for (int lane = 0; lane < LANES; ++lane) mean[lane] = quotient(mean[lane], count);
#pragma unroll
  for (int i = 0; i < GATHERED; ++i) {
    const T distance = gathered[i].mean - mean[i % LANES];
    spread[i % LANES] += gathered[i].spread + gathered[i].count * distance * distance;
  }
  block_combine<Sum>(spread, kept_thread, reduced_thread);
#pragma unroll
  for (int lane = 0; lane < LANES; ++lane) all[lane] = {count, mean[lane], spread[lane]};
}
