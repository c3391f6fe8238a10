// Parts of strips, SPLITS of each, in a ring of PLACES in shared memory. BLOCK threads copy,
// measure and write: a part is written when LATE more have been measured, and what other blocks
// have found about its strip has come. Two warps beside them tell what the block has found, and
// await the others: nobody else waits for anybody.
constexpr int WARPS = BLOCK / 32;

/// One of a block's parts after the other.
struct Turn {
  int number;  ///< its part number % SPLITS, of strip number / SPLITS; negative before the first
  int place;   ///< in the ring
  unsigned phase;  ///< of the place's barriers

  DEVICE explicit Turn(int first)
      : number(blockIdx.x + first * (int)gridDim.x),
        place((first + PLACES) % PLACES),
        phase(first < 0) {}
  DEVICE void next() {
    number += gridDim.x;
    if (++place == PLACES) place = 0, phase ^= 1;
  }
};
/// Which vectors of which strip the part of that number has; none where there is no such part.
struct Part {
  int kept, number, begin, count;
  DEVICE Part(int of_all, int all_parts) {
    constexpr int EACH = STEPS / SPLITS, MORE = STEPS % SPLITS;
    const bool is = of_all >= 0 && of_all < all_parts;
    kept = is ? (unsigned)of_all / SPLITS : 0;
    number = is ? (unsigned)of_all % SPLITS : 0;
    begin = number * EACH + (number < MORE ? number : MORE);
    count = is ? EACH + (number < MORE) : 0;
  }
};
/// For each of this thread's vectors of a part, which has STEPS / SPLITS or one more: only the last
/// turn asks whose are left.
template <class Each>
DEVICE void for_vectors(int count, const Each& each) {
#pragma unroll UNROLL
  for (int turn = 0; turn < (MOST_STEPS + BLOCK - 1) / BLOCK; ++turn) {
    const int i = turn * BLOCK + threadIdx.x;
    if ((turn + 1) * BLOCK <= STEPS / SPLITS || i < count) each(i);
  }
}
/// The rest of a part, whose first `copied` vectors are under way already.
template <class Copy>
DEVICE void copy_rest(const Copy& copy, const Part& part, int copied, int place) {
  const int first = copied + (int)(threadIdx.x + BLOCK - copied % BLOCK) % BLOCK;
  for (int i = first; i < part.count; i += BLOCK) copy(part, i, place);
  commit_copies();
}

/// What is known about the parts in the ring: by each warp, and about their strips, by all blocks.
template <class Found>
struct Exchange {
  Found found[PLACES][WARPS], all[PLACES];
  unsigned long long measured[PLACES], known[PLACES];

  DEVICE void begin() {
    if (threadIdx.x < PLACES) {
      make_barrier(shared_address(&measured[threadIdx.x]), WARPS);
      make_barrier(shared_address(&known[threadIdx.x]), 1);
    }
    __syncthreads();
  }
  /// By every warp that measures; its threads know the same.
  DEVICE void leave(const Turn& turn, const Found& one) {
    if (threadIdx.x % 32 != 0) return;
    found[turn.place][threadIdx.x / 32] = one;
    arrive(shared_address(&measured[turn.place]));
  }
  DEVICE Found known_of(const Turn& turn) {
    await(shared_address(&known[turn.place]), turn.phase);
    return all[turn.place];
  }
};

/// What a warp's threads have. Of moments two sums: whoever waits for them waits for the slowest
/// block.
template <class Op, class T>
DEVICE T combined_in_warp(T value) {
  T one[LANES] = {value};
  warp_combine<Op, 32>(one, threadIdx.x % 32);
  return one[0];
}
/// Of N values each.
template <class Op, int N, class T>
DEVICE T combined_in_warp(const T (&found)[N]) {
  T all = found[0];
#pragma unroll
  for (int i = 1; i < N; ++i) all = Op::of(all, found[i]);
  return combined_in_warp<Op>(all);
}
template <class Op, int N, class T>
DEVICE Moments<T> combined_in_warp(const Moments<T> (&found)[N]) {
  T count = 0, mean = 0, spread = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) count += found[i].count, mean += found[i].count * found[i].mean;
  count = combined_in_warp<Sum>(count);
  mean = quotient(combined_in_warp<Sum>(mean), count);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const T distance = found[i].mean - mean;
    spread += found[i].spread + found[i].count * distance * distance;
  }
  return {count, mean, combined_in_warp<Sum>(spread)};
}
/// What the parts of a strip come to, by a warp that asks for many of them at once.
template <class Found>
DEVICE Found awaited(const Told<Found>* parts, int lane) {
  constexpr int EACH = (SPLITS + 31) / 32, AT_ONCE = EACH < 8 ? EACH : 8;
  Found all = Found::none();
  for (int first = lane; first < EACH * 32; first += AT_ONCE * 32) {
    Found found[AT_ONCE + 1];
    bool there[AT_ONCE];
    found[AT_ONCE] = lane == 0 ? all : Found::none();
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      found[i] = Found::none();
      there[i] = first + i * 32 >= SPLITS || was_told(parts + first + i * 32, found[i]);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      while (!there[i]) there[i] = was_told(parts + first + i * 32, found[i]);
    }
    __syncwarp();
    all = Found::of_warp(found);
  }
  return all;
}
/// The two warps beside the others: one tells, one awaits.
template <class Found>
DEVICE void tell_and_await(Exchange<Found>& ring, Told<Found>* told, int all_parts) {
  const int lane = threadIdx.x % 32;
  Found all = Found::none();
  for (Turn turn(0); turn.number < all_parts; turn.next()) {
    if (threadIdx.x < BLOCK + 32) {
      await(shared_address(&ring.measured[turn.place]), turn.phase);
      const Found found[1] = {lane < WARPS ? ring.found[turn.place][lane] : Found::none()};
      all = Found::of_warp(found);
      if (lane == 0) tell(told + turn.number, all);
      continue;
    }
    const int first = turn.number / SPLITS * SPLITS;  // of the strip
    if (turn.number - (int)gridDim.x < first) all = awaited(told + first, lane);
    if (lane != 0) continue;
    ring.all[turn.place] = all;
    arrive(shared_address(&ring.known[turn.place]));
  }
}

// What a warp finds in a part: value(i, of) has the elements of its vector number i.
template <class Op, class T, class Value>
DEVICE T measured(const Value& value, int count, T none) {
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
/// First the mean, then distances from it: fewer instructions than moments that every element
/// changes.
template <class Op, class T, class Value>
DEVICE Moments<T> measured(const Value& value, int count, const Moments<T>&) {
  int vectors = 0;
  const T sum = measured<Sum>([&](int i, T(&of)[VEC]) { value(i, of), ++vectors; }, count, T(0));
  const T taken = __reduce_add_sync(0xffffffffu, vectors) * VEC;
  const T mean = taken > 0 ? quotient(sum, taken) : T(0);
  const auto square = [&](int i, T(&of)[VEC]) {
    value(i, of);
#pragma unroll
    for (int lane = 0; lane < VEC; ++lane) of[lane] = (of[lane] - mean) * (of[lane] - mean);
  };
  return {taken, mean, measured<Sum>(square, count, T(0))};
}

/// The largest of some elements, and the sum of e^(x - top) over them: of infinitely small ones
/// none.
struct Peak {
  float top, sum;
};
DEVICE float power(float x, float top) {
  const float from = top == __int_as_float(0xff800000) ? 0.0f : top;
  return power_of_two((x - from) * 1.4426950408889634f);
}
struct Higher {
  static DEVICE float part(const Peak& a, float top) {
    return a.sum > 0 ? a.sum * power(a.top, top) : a.sum;
  }
  static DEVICE Peak of(const Peak& a, const Peak& b) {
    const float top = maximum(a.top, b.top);
    return {top, part(a, top) + part(b, top)};
  }
};
template <class Op, class Value>
DEVICE Peak measured(const Value& value, int count, const Peak& none) {
  const float top = measured<Max>(value, count, none.top);
  const auto powers = [&](int i, float(&of)[VEC]) {
    value(i, of);
#pragma unroll
    for (int lane = 0; lane < VEC; ++lane) of[lane] = power(of[lane], top);
  };
  return {top, measured<Sum>(powers, count, 0.0f)};
}
