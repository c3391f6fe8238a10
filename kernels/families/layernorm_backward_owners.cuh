// Rows that no cluster holds beside everything else. OWNERS blocks share a row, all of them at work at once, and every block
// keeps to its columns from the first row to the last: parameters and column sums stay in registers, rows are read once.
// The rows that a block has under way lie in a ring of RING batches of BATCH rows: copies come in ahead, a batch is measured,
// and written LAG batches later, when what the other blocks found about its rows has long arrived.
constexpr int LAG = 2;
constexpr int AHEAD = RING - LAG;
constexpr int SLOTS = (LAG + 1) * BATCH;  // rows that the exchange holds: a block that measures batch i has written i - LAG - 1
constexpr int WORDS = 4;

/// A float, and above it the number of its row: one word, which is written and read at once, so that nothing else needs an
/// order. `clear` has been there before.
typedef unsigned long long Tagged;
DEVICE Tagged peek(const Tagged* at) {
  Tagged word;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
  return word;
}
DEVICE bool belongs(Tagged word, int row) { return (int)(word >> 32) == row + 1; }
DEVICE float await(const Tagged* at, Tagged word, int row) {
  while (!belongs(word, row)) word = peek(at);
  return __uint_as_float((unsigned)word);
}
DEVICE void tell(Tagged* at, int row, const float (&values)[WORDS]) {
#pragma unroll
  for (int i = 0; i < WORDS; ++i) {
    const Tagged word = (Tagged)(row + 1) << 32 | __float_as_uint(values[i]);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at + i), "l"(word) : "memory");
  }
}

/// What the blocks of a group, which share their rows, tell each other: of each row what every block found, and behind that
/// what it comes to. Rows are counted within the group.
struct Exchange {
  Tagged* words;

  DEVICE explicit Exchange(Tagged* all) : words(all + (long long)(blockIdx.x / OWNERS) * SLOTS * (OWNERS + 1) * WORDS) {}
  DEVICE Tagged* found(int row, int owner) const { return words + (row % SLOTS * (OWNERS + 1) + owner) * WORDS; }
  DEVICE Tagged* total(int row) const { return found(row, OWNERS); }

  /// The last warp of each block adds up what all blocks found about every row whose turn it is.
  DEVICE void run(int rows, float eps) const {
    constexpr int MINE = (OWNERS + 31) / 32;
    const int lane = threadIdx.x % 32;
    for (int row = PART_INDEX; row < rows; row += OWNERS) {
      while (!belongs(peek(found(row, PART_INDEX)), row)) __nanosleep(200);  // the others will not be far
      Tagged word[MINE][WORDS];
#pragma unroll
      for (int m = 0; m < MINE; ++m) {
#pragma unroll
        for (int i = 0; i < WORDS; ++i) word[m][i] = lane + m * 32 < OWNERS ? peek(found(row, lane + m * 32) + i) : 0;
      }
      Contribution all[1];
#pragma unroll
      for (int m = 0; m < MINE; ++m) {
        const int owner = lane + m * 32;
        if (owner >= OWNERS) break;
        float value[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS; ++i) value[i] = await(found(row, owner) + i, word[m][i], row);
        all[0].add({{(float)count_of_part(0, owner), value[0], value[1]}, value[2], value[3]});
      }
      __syncwarp();
      ::add_up(all, COLS, OverWarp());
      const RowSums sums = row_sums(all[0], eps);
      if (lane == 0) tell(total(row), row, {sums.norm.mean, sums.norm.scale, sums.mean_g, sums.mean_gx});
    }
  }
};

struct Owner {
  const Matrices& in;
  T* dx;
  int rows;  // of the group
  Exchange exchange;
  Parameters affine;
  ColumnSums columns;
  Team team;

  DEVICE Owner(const Matrices& in, const T* weight, T* dx, int rows, const Exchange& exchange)
      : in(in), dx(dx), rows(rows), exchange(exchange), affine{{weight}} {}

  DEVICE void run() {
    const int batches = (rows + BATCH - 1) / BATCH;
#pragma unroll 1
    for (int batch = 0; batch < RING; ++batch) {
#pragma unroll
      for (int b = 0; b < BATCH; ++b) request(batch * BATCH + b);
      close_batch();
    }
    affine.keep(team);
#pragma unroll 1
    for (int batch = 0; batch < batches + LAG; ++batch) {
      const int done = batch - LAG;
      Tagged total = 0;  // asked for before it is needed
      if (done >= 0 && asks(done)) total = peek(asked(done));
      wait_for_batches<AHEAD - 1>();
      if (batch < batches) measure(batch);
      if (done >= 0) finish(done, total);
    }
  }

 private:
  DEVICE Lane lane_of(int row) const { return Lane(FIRST_GROUP + row * GROUP_STEP, team); }
  static DEVICE Kept kept_of(int row) {
    Kept kept;
    kept.stage = row % (RING * BATCH);
    return kept;
  }
  DEVICE void request(int row) const {
    if (row >= rows) return;
    const Lane lane = lane_of(row);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) Kept::request(in, lane, row % (RING * BATCH), c);
  }
  DEVICE void measure(int batch) {
    Contribution found[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; ++b) {
      const int row = batch * BATCH + b;
      if (row < rows) found[b] = scan(in, affine, lane_of(row), kept_of(row));
    }
    add_up(found, lane_of(0).count(), OverBlock{team});
#pragma unroll
    for (int b = 0; b < BATCH; ++b) {
      const int row = batch * BATCH + b;
      if (threadIdx.x != b || row >= rows) continue;
      tell(exchange.found(row, PART_INDEX), row, {found[b].x.mean, found[b].x.squares, found[b].g, found[b].gx});
    }
  }
  /// A word of a batch's totals that this thread asks for.
  DEVICE int asked_row(int batch) const { return batch * BATCH + (int)threadIdx.x / WORDS; }
  DEVICE bool asks(int batch) const { return threadIdx.x < BATCH * WORDS && asked_row(batch) < rows; }
  DEVICE const Tagged* asked(int batch) const { return exchange.total(asked_row(batch)) + threadIdx.x % WORDS; }

  /// Writes a batch, and asks for the one that takes its place in the ring.
  DEVICE void finish(int batch, Tagged word) {
    __shared__ float totals[2][BATCH * WORDS];
    float* of_batch = totals[batch % 2];
    if (asks(batch)) of_batch[threadIdx.x] = await(asked(batch), word, asked_row(batch));
    meet();
#pragma unroll
    for (int b = 0; b < BATCH; ++b) {
      const int row = batch * BATCH + b;
      if (row < rows) {
        const float* total = of_batch + b * WORDS;
        ::write(in, affine, dx, lane_of(row), kept_of(row), {{total[0], total[1]}, total[2], total[3]}, columns);
      }
      request(row + RING * BATCH);
    }
    close_batch();
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK + 32, BLOCKS_PER_SM)
    kernel(const T* __restrict__ x, const T* __restrict__ dy, const T* __restrict__ weight, T* __restrict__ dx, float* __restrict__ shares,
           Tagged* __restrict__ words, float eps, long long rows) {
  const Matrices in = {x, dy};
  const Exchange exchange(words);
  const int mine = FIRST_GROUP < rows ? (int)((rows - FIRST_GROUP + GROUP_STEP - 1) / GROUP_STEP) : 0;
  if (threadIdx.x >= BLOCK) {
    exchange.run(mine, eps);
    return;
  }
  Owner owner(in, weight, dx, mine, exchange);
  owner.run();
  owner.columns.store(shares + FIRST_GROUP * 2 * COLS, owner.team);
}

/// No word of the exchange belongs to a row.
extern "C" __global__ void __launch_bounds__(256) clear(Tagged* words, long long count) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < count) words[i] = 0;
}
