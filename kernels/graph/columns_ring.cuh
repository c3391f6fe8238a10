// Helpers of the ring kernel of outer-axis reductions; atunner/codegen/reduce/columns_ring_text.cpp
// explains it. A column is cut into SPLITS segments. A block passes its segments through a ring of
// SLOTS slots in shared memory: BLOCK threads copy, reduce and write; a segment is written DELAY
// turns after it was reduced. Two more warps exchange partial results with the other blocks.
constexpr int WARPS = BLOCK / 32;

/// One of a block's segments after the other.
struct Turn {
  int number;      ///< segment number % SPLITS of column number / SPLITS; negative before the first
  int slot;        ///< in the ring
  unsigned phase;  ///< parity of the slot's mbarriers

  DEVICE explicit Turn(int first)
      : number(blockIdx.x + first * (int)gridDim.x),
        slot((first + SLOTS) % SLOTS),
        phase(first < 0) {}
  DEVICE void next() {
    number += gridDim.x;
    if (++slot == SLOTS) slot = 0, phase ^= 1;
  }
};
/// The column and the vectors of the segment number `index`; `count` is 0 where there is no such
/// segment.
struct Segment {
  int kept, number, begin, count;
  DEVICE Segment(int index, int all_segments) {
    constexpr int EACH = STEPS / SPLITS, MORE = STEPS % SPLITS;
    const bool exists = index >= 0 && index < all_segments;
    kept = exists ? (unsigned)index / SPLITS : 0;
    number = exists ? (unsigned)index % SPLITS : 0;
    begin = number * EACH + (number < MORE ? number : MORE);
    count = exists ? EACH + (number < MORE) : 0;
  }
};
/// Calls each(i) for this thread's vectors of a segment, which has STEPS / SPLITS vectors or one
/// more: only the last iteration compares with `count`.
template <class Each>
DEVICE void for_vectors(int count, const Each& each) {
#pragma unroll UNROLL
  for (int turn = 0; turn < (MAX_STEPS + BLOCK - 1) / BLOCK; ++turn) {
    const int i = turn * BLOCK + threadIdx.x;
    if ((turn + 1) * BLOCK <= STEPS / SPLITS || i < count) each(i);
  }
}
/// Starts the copies of a segment but for its first `copied` vectors, which are in flight already.
template <class Copy>
DEVICE void copy_rest(const Copy& copy, const Segment& segment, int copied, int slot) {
  const int first = copied + (int)(threadIdx.x + BLOCK - copied % BLOCK) % BLOCK;
  for (int i = first; i < segment.count; i += BLOCK) copy(segment, i, slot);
  commit_copies();
}

/// For each slot, the partial results of the warps, and the total of the column over all blocks.
template <class Partial>
struct Exchange {
  Partial partial[SLOTS][WARPS], total[SLOTS];
  unsigned long long reduced[SLOTS], complete[SLOTS];  // mbarriers

  DEVICE void begin() {
    if (threadIdx.x < SLOTS) {
      make_barrier(shared_address(&reduced[threadIdx.x]), WARPS);
      make_barrier(shared_address(&complete[threadIdx.x]), 1);
    }
    __syncthreads();
  }
  /// Called by every warp that reduces; its threads pass the same value.
  DEVICE void post(const Turn& turn, const Partial& one) {
    if (threadIdx.x % 32 != 0) return;
    partial[turn.slot][threadIdx.x / 32] = one;
    arrive(shared_address(&reduced[turn.slot]));
  }
  /// Waits for the total.
  DEVICE Partial total_of(const Turn& turn) {
    await(shared_address(&complete[turn.slot]), turn.phase);
    return total[turn.slot];
  }
};

/// Combines the values of a warp's threads. Moments take two sums, so that the latency is short.
template <class Op, class T>
DEVICE T combined_in_warp(T value) {
  T one[LANES] = {value};
  warp_combine<Op, 32>(one, threadIdx.x % 32);
  return one[0];
}
/// The same with N values per thread.
template <class Op, int N, class T>
DEVICE T combined_in_warp(const T (&values)[N]) {
  T all = values[0];
#pragma unroll
  for (int i = 1; i < N; ++i) all = Op::of(all, values[i]);
  return combined_in_warp<Op>(all);
}
template <class Op, int N, class T>
DEVICE Moments<T> combined_in_warp(const Moments<T> (&values)[N]) {
  T count = 0, mean = 0, m2 = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) count += values[i].count, mean += values[i].count * values[i].mean;
  count = combined_in_warp<Sum>(count);
  mean = quotient(combined_in_warp<Sum>(mean), count);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const T distance = values[i].mean - mean;
    m2 += values[i].m2 + values[i].count * distance * distance;
  }
  return {count, mean, combined_in_warp<Sum>(m2)};
}
/// Waits for the partial results of all segments of a column and combines them. A warp loads up to
/// 8 * 32 of them at once.
template <class Partial>
DEVICE Partial await_partials(const Published<Partial>* segments, int lane) {
  constexpr int EACH = (SPLITS + 31) / 32, AT_ONCE = EACH < 8 ? EACH : 8;
  Partial all = Partial::none();
  for (int first = lane; first < EACH * 32; first += AT_ONCE * 32) {
    Partial partials[AT_ONCE + 1];
    bool there[AT_ONCE];
    partials[AT_ONCE] = lane == 0 ? all : Partial::none();
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      partials[i] = Partial::none();
      there[i] = first + i * 32 >= SPLITS || try_read(segments + first + i * 32, partials[i]);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      while (!there[i]) there[i] = try_read(segments + first + i * 32, partials[i]);
    }
    __syncwarp();
    all = Partial::of_warp(partials);
  }
  __threadfence_block();  // what the other blocks' and this block's publishers did comes before
  return all;
}
/// The two further warps: the first publishes the block's partial results, the second waits for
/// those of the other blocks.
template <class Partial>
DEVICE void exchange_partials(Exchange<Partial>& ring, Published<Partial>* published,
                              int all_segments) {
  const int lane = threadIdx.x % 32;
  Partial all = Partial::none();
  for (Turn turn(0); turn.number < all_segments; turn.next()) {
    if (threadIdx.x < BLOCK + 32) {
      await(shared_address(&ring.reduced[turn.slot]), turn.phase);
      const Partial partials[1] = {lane < WARPS ? ring.partial[turn.slot][lane] : Partial::none()};
      all = Partial::of_warp(partials);
      if (lane != 0) continue;
      // Who sees the result, and the total behind it, may overwrite what this warp has read.
      __threadfence_block();
      publish(published + turn.number, all);
      continue;
    }
    const int first = turn.number / SPLITS * SPLITS;  // segment of the column
    if (turn.number - (int)gridDim.x < first) all = await_partials(published + first, lane);
    if (lane != 0) continue;
    ring.total[turn.slot] = all;
    arrive(shared_address(&ring.complete[turn.slot]));
  }
}

/// Reduces a segment over the threads of a warp; value(i, of) computes the elements of vector i.
template <class Op, class T, class Value>
DEVICE T reduce_segment(const Value& value, int count, T none) {
  T all[VEC];
#pragma unroll
  for (int lane = 0; lane < VEC; ++lane) all[lane] = none;
  for_vectors(count, [&](int i) {
    T of[VEC];
    value(i, of);
#pragma unroll
    for (int lane = 0; lane < VEC; ++lane) all[lane] = Op::of(all[lane], of[lane]);
  });
  return combined_in_warp<Op>(tree<Op, VEC>(all));
}
/// Moments: first the mean, then squared distances from it, which takes fewer instructions than
/// updating moments with every element.
template <class Op, class T, class Value>
DEVICE Moments<T> reduce_segment(const Value& value, int count, const Moments<T>&) {
  int vectors = 0;
  const T sum = reduce_segment<Sum>([&](int i, T(&of)[VEC]) { value(i, of), ++vectors; }, count,
                                    T(0));
  const T taken = __reduce_add_sync(0xffffffffu, vectors) * VEC;
  const T mean = taken > 0 ? quotient(sum, taken) : T(0);
  const auto square = [&](int i, T(&of)[VEC]) {
    value(i, of);
#pragma unroll
    for (int lane = 0; lane < VEC; ++lane) of[lane] = (of[lane] - mean) * (of[lane] - mean);
  };
  return {taken, mean, reduce_segment<Sum>(square, count, T(0))};
}

/// The state of an online softmax: the largest of some elements, and the sum of e^(x - largest)
/// over them, which is 0 where all of them are -infinity.
struct MaxExpSum {
  float largest, sum;
};
DEVICE float power(float x, float largest) {
  const float from = largest == __int_as_float(0xff800000) ? 0.0f : largest;
  return power_of_two((x - from) * 1.4426950408889634f);
}
struct MergeMaxExpSum {
  static DEVICE float part(const MaxExpSum& a, float largest) {
    return a.sum > 0 ? a.sum * power(a.largest, largest) : a.sum;
  }
  static DEVICE MaxExpSum of(const MaxExpSum& a, const MaxExpSum& b) {
    const float largest = maximum(a.largest, b.largest);
    return {largest, part(a, largest) + part(b, largest)};
  }
};
template <class Op, class Value>
DEVICE MaxExpSum reduce_segment(const Value& value, int count, const MaxExpSum& none) {
  const float largest = reduce_segment<Max>(value, count, none.largest);
  const auto powers = [&](int i, float(&of)[VEC]) {
    value(i, of);
#pragma unroll
    for (int lane = 0; lane < VEC; ++lane) of[lane] = power(of[lane], largest);
  };
  return {largest, reduce_segment<Sum>(powers, count, 0.0f)};
}
