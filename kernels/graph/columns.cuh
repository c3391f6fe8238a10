// Reductions over the threads of a block that share kept elements: KEPT_THREADS of them side by side, each with LANES
// neighbouring elements, and REDUCED_THREADS that divide what is reduced.
constexpr int BLOCK = KEPT_THREADS * REDUCED_THREADS;

/// Combines every lane over the threads of one kept thread, in an order that does not depend on time; all get the result.
template <class Op, class T> DEVICE void block_combine(T (&value)[LANES], int kept_thread, int reduced_thread) {
  if (REDUCED_THREADS == 1) return;
  __shared__ T part[REDUCED_THREADS][LANES][KEPT_THREADS];
#pragma unroll
  for (int lane = 0; lane < LANES; ++lane) part[reduced_thread][lane][kept_thread] = value[lane];
  __syncthreads();
#pragma unroll
  for (int half = REDUCED_THREADS / 2; half > 0; half /= 2) {
    if (reduced_thread < half) {
#pragma unroll
      for (int lane = 0; lane < LANES; ++lane) {
        value[lane] = Op::of(value[lane], part[reduced_thread + half][lane][kept_thread]);
        part[reduced_thread][lane][kept_thread] = value[lane];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int lane = 0; lane < LANES; ++lane) value[lane] = part[0][lane][kept_thread];
  __syncthreads();
}

/// Counts the block in `arrived`: what it wrote before can be read by those who see it there.
DEVICE void arrive(unsigned* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
}
/// Returns when so many blocks have arrived; all of them run at once.
DEVICE void await_blocks(const unsigned* arrived, unsigned blocks) {
  if (threadIdx.x == 0) {
    unsigned seen;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
    while (seen < blocks);
  }
  __syncthreads();
}
DEVICE void meet_blocks(unsigned* arrived, unsigned blocks) {
  arrive(arrived);
  await_blocks(arrived, blocks);
}

/// Of a count. Divided in full, it would take a branch that keeps loads from moving ahead of it.
DEVICE float reciprocal(float count) { return __fdividef(1.0f, count); }
DEVICE double reciprocal(double count) { return 1.0 / count; }

/// Count, mean and sum of squared distances from it (Welford; combined as by Chan, Golub and LeVeque 1979).
template <class T> struct Moments {
  T count, mean, spread;
  /// Adds a value; `share` is one over the count with it. The count is the same for all lanes: whoever adds keeps it.
  DEVICE void add(T value, T share) {
    const T distance = value - mean;
    mean += distance * share;
    spread += distance * (value - mean);
  }
};
struct Merged {
  template <class T> static DEVICE Moments<T> of(const Moments<T>& a, const Moments<T>& b) {
    const T count = a.count + b.count;
    const T share = count > 0 ? b.count / count : T(0);
    const T distance = b.mean - a.mean;
    return {count, a.mean + distance * share, a.spread + b.spread + distance * distance * a.count * share};
  }
};
