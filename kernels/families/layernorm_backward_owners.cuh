// Rows that no cluster holds beside everything else. OWNERS blocks share a row, all of them at work at once, and every block
// keeps to its columns from the first row to the last: parameters and column sums stay in registers, rows are read once.
// The rows that a block has under way lie in a ring of RING batches of BATCH rows in shared memory: copies come in ahead, a
// batch is measured, and written LAG batches later, when what all blocks found about its rows has long been added up.
// Two further warps see to that: one speaks for its block, one adds up what the blocks say of every OWNERS-th row.
constexpr int LAG = RING - AHEAD;
constexpr int SLOTS = (LAG + 1) * BATCH;  // rows that the exchange holds: a block that tells of batch i has read the totals of i - LAG
constexpr int WORDS = 4;
constexpr int WARPS = BLOCK / 32;
constexpr int SETTLE = 16;  // batches

/// A float, and above it the number of its row: one word, which is written and read at once, so that nothing else needs an
/// order. `clear_words` has been there before.
typedef unsigned long long Tagged;
DEVICE Tagged peek(const Tagged* at) {
  Tagged word;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
  return word;
}
DEVICE bool belongs(Tagged word, int row) { return (int)(word >> 32) == row + 1; }
DEVICE float await(const Tagged* at, int row) {
  Tagged word;
  do word = peek(at);
  while (!belongs(word, row));
  return __uint_as_float((unsigned)word);
}
DEVICE void tell(Tagged* at, int row, const float (&values)[WORDS]) {
  UNROLLED for (int i = 0; i < WORDS; ++i) {
    const Tagged word = (Tagged)(row + 1) << 32 | __float_as_uint(values[i]);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at + i), "l"(word) : "memory");
  }
}

/// What the blocks of a group, which share their rows, tell each other: of each row what every block found, and what it comes
/// to, once for every block, so that they do not ask at one place. Rows are counted within the group.
struct Exchange {
  Tagged* words;

  DEVICE explicit Exchange(Tagged* all) : words(all + (long long)(blockIdx.x / OWNERS) * SLOTS * 2 * OWNERS * WORDS) {}
  DEVICE Tagged* found(int row, int owner) const { return words + (row % SLOTS * 2 * OWNERS + owner) * WORDS; }
  DEVICE Tagged* total(int row, int owner) const { return found(row, OWNERS + owner); }

  /// Adds up what all blocks found about the rows whose turn it is.
  DEVICE void add_up(int rows, float eps) const {
    constexpr int MINE = (OWNERS + 31) / 32;
    const int lane = threadIdx.x % 32;
    for (int row = PART_INDEX; row < rows; row += OWNERS) {
      while (!belongs(peek(found(row, PART_INDEX)), row)) __nanosleep(64);  // the others will not be far
      // Asked for together, again and again: one after the other, every word would take its own way to memory and back.
      Tagged word[MINE][WORDS] = {};
      bool complete;
      do {
        complete = true;
        UNROLLED for (int i = 0; i < MINE * WORDS; ++i) {
          const int owner = lane + i / WORDS * 32;
          if (owner >= OWNERS || belongs(word[i / WORDS][i % WORDS], row)) continue;
          word[i / WORDS][i % WORDS] = peek(found(row, owner) + i % WORDS);
        }
        UNROLLED for (int i = 0; i < MINE * WORDS; ++i)
          complete = complete && (lane + i / WORDS * 32 >= OWNERS || belongs(word[i / WORDS][i % WORDS], row));
      } while (!complete);
      Contribution parts[MINE];
      UNROLLED for (int m = 0; m < MINE; ++m) {
        const auto value = [&](int i) { return __uint_as_float((unsigned)word[m][i]); };
        const int columns = max(0, min(PART, COLS - (lane + m * 32) * PART));
        if (lane + m * 32 < OWNERS) parts[m] = {{(float)columns, value(0), value(1)}, value(2), value(3)};
      }
      __syncwarp();
      const RowSums sums = row_sums(whole(parts, COLS, OverLanes<32>()), eps);
      UNROLLED for (int m = 0; m < MINE; ++m) {
        const int owner = lane + m * 32;
        if (owner < OWNERS) tell(total(row, owner), row, {sums.norm.mean, sums.norm.scale, sums.mean_g, sums.mean_gx});
      }
    }
  }
};

/// What the warps of a block hand to the one that speaks for it, and what that one hands back: at the barrier of a batch the
/// measures of the batch and the totals of the one LAG before, in areas that alternate.
struct Hall {
  float count[WARPS];                        // elements of a warp's columns
  float found[2][WARPS][BATCH][WORDS];       // squares, g, g * x and the mean that these are about
  float totals[2][BATCH][WORDS];
};
DEVICE Hall& hall() {
  __shared__ __align__(16) Hall it;
  return it;
}
DEVICE void meet_speaker() { asm volatile("bar.sync 1, %0;" ::"n"(BLOCK + 32) : "memory"); }

/// Sums N values, a power of two, over the warp: lane i gets that of value i / (32 / N). Each step hands half of the values
/// to the other half of the lanes.
template <int N, int OFFSET = 16>
DEVICE float fold(float* values, int lane) {
  const bool upper = lane & OFFSET;
  UNROLLED for (int i = 0; i < N / 2; ++i) {
    const float given = upper ? values[i] : values[i + N / 2];
    values[i] = (upper ? values[i + N / 2] : values[i]) + __shfl_xor_sync(0xffffffffu, given, OFFSET);
  }
  if (N == 1) values[0] += __shfl_xor_sync(0xffffffffu, values[0], OFFSET);
  if constexpr (OFFSET == 1) return values[0];
  else return fold<(N > 1 ? N / 2 : 1), OFFSET / 2>(values, lane);
}

/// The warp that speaks for its block.
struct Speaker {
  const Exchange& exchange;
  int rows;

  DEVICE void run(int count) const {
    const int batches = (rows + BATCH - 1) / BATCH, lane = threadIdx.x % 32;
#pragma unroll 1
    for (int batch = 0; batch < batches + LAG; ++batch) {
      const int row = (batch - LAG) * BATCH + lane / WORDS;
      if (batch >= LAG && lane < BATCH * WORDS && row < rows)
        hall().totals[batch % 2][lane / WORDS][lane % WORDS] = await(exchange.total(row, PART_INDEX) + lane % WORDS, row);
      __syncwarp();
      meet_speaker();
      if (batch < batches) tell_of(batch, count, lane);
    }
  }

 private:
  /// Some lanes for each row of the batch add up what the warps found.
  DEVICE void tell_of(int batch, int count, int lane) const {
    constexpr int LANES = 32 / BATCH, EACH = WARPS > LANES ? WARPS / LANES : 1;
    const int b = lane / LANES, row = batch * BATCH + b;
    Contribution parts[EACH];
    UNROLLED for (int i = 0; i < EACH; ++i) {
      const int w = lane % LANES + i * LANES;
      if (w >= WARPS) break;
      const float* found = hall().found[batch % 2][w][b];
      parts[i] = {{hall().count[w], found[3], found[0]}, found[1], found[2]};
    }
    const Contribution all = whole(parts, count, OverLanes<LANES>());
    if (lane % LANES == 0 && row < rows) tell(exchange.found(row, PART_INDEX), row, {all.x.mean, all.x.squares, all.g, all.gx});
  }
};

/// The warps that serve rows.
struct Owner {
  const Matrices& in;
  T* dx;
  int rows;  // of the group
  Parameters affine;
  ColumnSums columns;
  Team team;
  float share = 0;  // one over the elements of a row that the warp has

  DEVICE Owner(const Matrices& in, const T* weight, T* dx, int rows) : in(in), dx(dx), rows(rows), affine({weight}) {}

  DEVICE void run() {
    const int batches = (rows + BATCH - 1) / BATCH;
#pragma unroll 1
    for (int batch = 0; batch < RING; ++batch) {
      UNROLLED for (int b = 0; b < BATCH; ++b) request(batch * BATCH + b);
      commit_copies();
    }
    count();
#pragma unroll 1
    for (int batch = 0; batch <= batches + LAG; ++batch) {
      const int past = batch - 1 - LAG;
      Taken taken;
      if (past >= 0) take(past, taken);
      wait_copies<AHEAD - 1>();
      // What a thread waits for while it measures, it fills with writing: only what lies in one stretch of code is mingled.
      if (past >= 0 && (batch + 1) * BATCH <= rows) {
        measure<true>(batch);
        write<true>(past, taken);
      } else {
        if (batch < batches) measure<false>(batch);
        if (past >= 0) write<false>(past, taken);
      }
      if (batch < batches + LAG) meet_speaker();
    }
  }

 private:
  DEVICE Lane lane_of(int row) const { return Lane(FIRST_GROUP + row * GROUP_STEP, team); }
  DEVICE Kept kept_of(int row) const { return Kept(in, row % (RING * BATCH)); }
  DEVICE void request(int row) const {
    if (row >= rows) return;
    const Lane lane = lane_of(row);
    UNROLLED for (int c = 0; c < CHUNKS; ++c) kept_of(row).request(lane, row % (RING * BATCH), c);
  }
  DEVICE void count() {
    const Lane lane = lane_of(0);
    float elements[1] = {0};
    UNROLLED for (int c = 0; c < CHUNKS; ++c) elements[0] += lane.has(c) ? VEC : 0;
    warp_reduce<Sum, 32>(elements);
    share = elements[0] > 0 ? 1 / elements[0] : 0;
    if (threadIdx.x % 32 == 0) hall().count[threadIdx.x / 32] = elements[0];
  }

  /// Hands on the warp's mean of each row of the batch, and sums about it. WHOLE: all rows of the batch exist.
  template <bool WHOLE>
  DEVICE void measure(int batch) {
    float mean[BATCH], sums[BATCH * WORDS];
    UNROLLED for (int b = 0; b < BATCH; ++b) {
      mean[b] = 0;
      if (WHOLE || batch * BATCH + b < rows) each(batch * BATCH + b, [&](int, const Elements& v, const Elements&) {
        UNROLLED for (int e = 0; e < VEC; ++e) mean[b] += v[e];
      });
    }
    warp_reduce<Sum, 32>(mean);
    const int lane = threadIdx.x % 32;
    UNROLLED for (int b = 0; b < BATCH; ++b) {
      mean[b] *= share;
      float squares = 0, g_sum = 0, gx = 0;
      if (WHOLE || batch * BATCH + b < rows) each(batch * BATCH + b, [&](int c, const Elements& v, const Elements& u) {
        const Elements w = affine.get(lane_of(0), c);
        UNROLLED for (int e = 0; e < VEC; ++e) {
          const float deviation = v[e] - mean[b], g = u[e] * w[e];
          squares += deviation * deviation;
          g_sum += g;
          gx += g * deviation;
        }
      });
      sums[b * WORDS] = squares;
      sums[b * WORDS + 1] = g_sum;
      sums[b * WORDS + 2] = gx;
      sums[b * WORDS + 3] = lane == 0 ? mean[b] : 0;
    }
    const float sum = fold<BATCH * WORDS>(sums, lane);
    constexpr int LANES = 32 / (BATCH * WORDS);
    if (lane % LANES == 0) (&hall().found[batch % 2][threadIdx.x / 32][0][0])[lane / LANES] = sum;
  }
  /// This thread's vectors of a row.
  template <class Use>
  DEVICE void each(int row, const Use& use) const {
    const Lane lane = lane_of(row);
    const Kept kept = kept_of(row);
    lane.each<1024>([&](int c) { use(c, kept.get(lane, c, 0), kept.get(lane, c, 1)); });
  }

  /// A thread's vectors of a batch.
  typedef Elements Taken[BATCH][CHUNKS][TENSORS];

  /// Takes a batch out of the ring, and asks for the one that takes its place.
  DEVICE void take(int batch, Taken& to) const {
    UNROLLED for (int b = 0; b < BATCH; ++b) {
      const int row = batch * BATCH + b;
      const Lane lane = lane_of(row);
      const Kept kept = kept_of(row);
      UNROLLED for (int c = 0; c < CHUNKS; ++c) {
        UNROLLED for (int tensor = 0; tensor < TENSORS; ++tensor) {
          if (row < rows && lane.has(c)) to[b][c][tensor] = kept.get(lane, c, tensor);
        }
      }
      request(row + RING * BATCH);
    }
    commit_copies();
  }
  template <bool WHOLE>
  DEVICE void write(int batch, const Taken& from) {
    const auto& totals = hall().totals[(batch + LAG) % 2];
    UNROLLED for (int b = 0; b < BATCH; ++b) {
      const int row = batch * BATCH + b;
      const float* total = totals[b];
      if (WHOLE || row < rows)
        ::write([&](int c, int tensor) { return from[b][c][tensor]; }, affine, dx, lane_of(row), {{total[0], total[1]}, total[2], total[3]}, columns);
    }
    if (batch % SETTLE == SETTLE - 1) columns.settle();
  }
};

/// DIRECT: the blocks see all rows. Else their shares of the column sums are added up by another kernel.
extern "C" __global__ void __launch_bounds__(BLOCK + 64, BLOCKS_PER_SM)
    kernel(const T* __restrict__ x, const T* __restrict__ dy, const T* __restrict__ weight, T* __restrict__ dx, T* __restrict__ dweight,
           T* __restrict__ dbias, float* __restrict__ shares, Tagged* __restrict__ words, float eps, long long rows) {
  const Matrices in = {x, dy};
  const Exchange exchange(words);
  const int mine = FIRST_GROUP < rows ? (int)((rows - FIRST_GROUP + GROUP_STEP - 1) / GROUP_STEP) : 0;
  if (threadIdx.x >= BLOCK + 32) {
    exchange.add_up(mine, eps);
  } else if (threadIdx.x >= BLOCK) {
    Speaker{exchange, mine}.run(Lane(0, Team()).count());
  } else {
    Owner owner(in, weight, dx, mine);
    owner.run();
    if (!DIRECT) return owner.columns.store(shares + FIRST_GROUP * 2 * COLS);
    owner.columns.add_up([&](const Lane& lane, int c, const float (&sums)[2][VEC]) {
      put(dweight, lane, c, sums[0]);
      put(dbias, lane, c, sums[1]);
    });
  }
}

/// No word of the exchange belongs to a row.
extern "C" __global__ void __launch_bounds__(256) clear_words(Tagged* words, long long count) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < count) words[i] = 0;
}
