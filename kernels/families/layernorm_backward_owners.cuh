// Rows that no cluster holds beside everything else. OWNERS blocks share a row, all of them at work at once, and every block
// keeps to its columns from the first row to the last: parameters and column sums stay in registers, rows are read once.
// The rows that a block has under way lie in a ring of RING batches in shared memory: copies come in ahead, a batch is
// measured, and written LAG batches later, when what all blocks found about its rows has long been added up. Four further
// warps see to that, so that none of the others waits for memory or for its neighbours: one copies, one tells what the block
// found, one listens for what that comes to, and one adds up what the blocks say of every OWNERS-th row.
constexpr int LAG = RING - AHEAD;
constexpr int TURNS = LAG + 1;        // batches that the exchange holds: who tells of batch i has read the totals of i - TURNS
constexpr int SLOTS = TURNS * BATCH;  // rows of those
constexpr int WORDS = 4;
constexpr int WARPS = BLOCK / 32;
constexpr int SETTLE = 16;  // batches

/// A float, and above it the number of its row: one word, which is written and read at once, so that nothing else needs an
/// order. `clear` has been there before.
typedef unsigned long long Tagged;
DEVICE Tagged peek(const Tagged* at) {
  Tagged word;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(at) : "memory");
  return word;
}
DEVICE bool belongs(Tagged word, int row) { return (int)(word >> 32) == row + 1; }
DEVICE float value_of(Tagged word) { return __uint_as_float((unsigned)word); }
DEVICE void tell(Tagged* at, int row, const float (&values)[WORDS]) {
#pragma unroll
  for (int i = 0; i < WORDS; ++i) {
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
#pragma unroll
        for (int i = 0; i < MINE * WORDS; ++i) {
          const int owner = lane + i / WORDS * 32;
          if (owner >= OWNERS || belongs(word[i / WORDS][i % WORDS], row)) continue;
          word[i / WORDS][i % WORDS] = peek(found(row, owner) + i % WORDS);
        }
#pragma unroll
        for (int i = 0; i < MINE * WORDS; ++i)
          complete = complete && (lane + i / WORDS * 32 >= OWNERS || belongs(word[i / WORDS][i % WORDS], row));
      } while (!complete);
      Contribution all[1];
#pragma unroll
      for (int m = 0; m < MINE; ++m) {
        const int owner = lane + m * 32;
        if (owner >= OWNERS) break;
        const Tagged(&of)[WORDS] = word[m];
        all[0].add({{(float)count_of_part(0, owner), value_of(of[0]), value_of(of[1])}, value_of(of[2]), value_of(of[3])});
      }
      __syncwarp();
      ::add_up(all, COLS, OverWarp());
      const RowSums sums = row_sums(all[0], eps);
#pragma unroll
      for (int m = 0; m < MINE; ++m) {
        const int owner = lane + m * 32;
        if (owner < OWNERS) tell(total(row, owner), row, {sums.norm.mean, sums.norm.scale, sums.mean_g, sums.mean_gx});
      }
    }
  }
};

/// What the warps of a block hand to each other. Barriers of the ring: a batch has come, its place is free; of the exchange:
/// all warps have measured a batch, its totals are there.
struct Hall {
  float4 totals[SLOTS];
  float found[TURNS][WARPS][BATCH][WORDS + 1];  // squares, g, g * x and x, all about the last
  float count[WARPS];                           // elements of a warp's columns
  unsigned long long copied[RING], freed[RING], measured[TURNS], answered[TURNS];
};
DEVICE Hall& hall() {
  __shared__ __align__(16) Hall it;
  return it;
}
DEVICE unsigned address(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
DEVICE void init(unsigned long long& barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(&barrier)), "r"(count) : "memory");
}
DEVICE void arrive(unsigned long long& barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&barrier)) : "memory"); }
/// Waits until round `round` of a barrier is complete.
DEVICE void await(unsigned long long& barrier, int round) {
  unsigned done = 0;
  while (!done) {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(address(&barrier)), "r"(round & 1)
                 : "memory");
  }
}

/// What the block has of row i of a batch, in the ring: whole vectors of all its threads.
DEVICE Vector* place(int batch, int i, int tensor) {
  return (Vector*)dynamic_shared + ((batch % RING * BATCH + i) * TENSORS + tensor) * CHUNKS * THREADS_PER_ROW;
}
DEVICE long long first_element(int row) { return (blockIdx.x / OWNERS + row * (long long)(gridDim.x / OWNERS)) * COLS + PART_INDEX * PART; }

/// Sums N values, a power of two, over the warp: lane i gets that of value i / (32 / N). Each step hands half of the values
/// to the other half of the lanes.
template <int N, int OFFSET = 16>
DEVICE float fold(float* values, int lane) {
  const bool upper = lane & OFFSET;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const float given = upper ? values[i] : values[i + N / 2];
    values[i] = (upper ? values[i + N / 2] : values[i]) + __shfl_xor_sync(0xffffffffu, given, OFFSET);
  }
  if (N == 1) values[0] += __shfl_xor_sync(0xffffffffu, values[0], OFFSET);
  if constexpr (OFFSET == 1) return values[0];
  else return fold<(N > 1 ? N / 2 : 1), OFFSET / 2>(values, lane);
}

/// The warps that serve the others.
struct Servant {
  const Exchange& exchange;
  int rows;  // of the group
  int lane = threadIdx.x % 32;
  int batches = (rows + BATCH - 1) / BATCH;
  int count = count_of_part(0, PART_INDEX);

  /// Copies what the block has of each row, a lane for each row of a batch and tensor.
  DEVICE void copy(const Matrices& in) const {
    const int bytes = count * sizeof(T), i = lane / TENSORS, tensor = lane % TENSORS;
#pragma unroll 1
    for (int batch = 0; batch < batches; ++batch) {
      const unsigned copied = address(&hall().copied[batch % RING]);
      if (batch >= RING) await(hall().freed[batch % RING], batch / RING - 1);
      if (lane == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(copied), "r"(min(BATCH, rows - batch * BATCH) * TENSORS * bytes)
                     : "memory");
      }
      __syncwarp();
      const int row = batch * BATCH + i;
      if (i >= BATCH || row >= rows || bytes == 0) continue;
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address(place(batch, i, tensor))),
                   "l"(in[tensor] + first_element(row)), "r"(bytes), "r"(copied)
                   : "memory");
    }
  }
  /// Tells of each batch what the block's warps found.
  DEVICE void speak() const {
#pragma unroll 1
    for (int batch = 0; batch < batches; ++batch) {
      await(hall().measured[batch % TURNS], batch / TURNS);
      tell_of(batch);
    }
  }
  /// Hands on what the rows come to. Memory is far: many rows are asked for at once.
  DEVICE void listen() const {
    constexpr int MOST = SLOTS < 32 ? SLOTS : 32 / BATCH * BATCH;
#pragma unroll 1
    for (int next = 0; next < rows;) {
      const int row = next + lane;
      bool there = lane < MOST;
      float value[WORDS];
      if (there && row < rows) {  // nobody waits for the others
        Tagged word[WORDS];
#pragma unroll
        for (int i = 0; i < WORDS; ++i) word[i] = peek(exchange.total(row, PART_INDEX) + i);
#pragma unroll
        for (int i = 0; i < WORDS; ++i) {
          there = there && belongs(word[i], row);
          value[i] = value_of(word[i]);
        }
      }
      const unsigned missing = __ballot_sync(0xffffffffu, !there);
      const int come = (missing == 0 ? 32 : __ffs(missing) - 1) / BATCH * BATCH;
      const bool mine = lane < come && row < rows;
      if (mine) hall().totals[row % SLOTS] = make_float4(value[0], value[1], value[2], value[3]);
      __syncwarp();
      if (mine && lane % BATCH == 0) arrive(hall().answered[row / BATCH % TURNS]);
      next += come;
    }
  }

 private:
  /// Some lanes for each row of the batch add up what the warps found.
  DEVICE void tell_of(int batch) const {
    constexpr int LANES = 32 / BATCH;
    const int b = lane / LANES, row = batch * BATCH + b;
    const auto& found = hall().found[batch % TURNS];
    float mean = 0, squares = 0, g = 0, gx = 0;
#pragma unroll
    for (int w = lane % LANES; w < WARPS; w += LANES) mean += found[w][b][3] + hall().count[w] * found[w][b][4];
    mean = over(LANES, mean) / max(1, count);
#pragma unroll
    for (int w = lane % LANES; w < WARPS; w += LANES) {
      // From the warp's pivot to its own mean, and on to the block's.
      const auto& of = found[w][b];
      const float n = hall().count[w], offset = n == 0 ? 0 : of[3] / n, delta = of[4] + offset - mean;
      squares += fmaxf(0.0f, of[0] - offset * of[3]) + n * delta * delta;
      g += of[1];
      gx += of[2] + (delta - offset) * of[1];
    }
    const float values[WORDS] = {mean, over(LANES, squares), over(LANES, g), over(LANES, gx)};
    if (lane % LANES == 0 && row < rows) tell(exchange.found(row, PART_INDEX), row, values);
  }
  static DEVICE float over(int lanes, float value) {
#pragma unroll
    for (int offset = lanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
  }
};

/// The warps that serve rows.
struct Owner {
  T* dx;
  int rows;  // of the group
  Parameters affine;
  ColumnSums columns;
  Team team;
  Lane own;  // of the block's columns

  DEVICE Owner(const T* weight, T* dx, int rows) : dx(dx), rows(rows), affine{{weight}}, own(0, team) {}

  DEVICE void count() {
    float elements[1] = {0};
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) elements[0] += own.has(c) ? VEC : 0;
    warp_reduce<Sum>(elements);
    hall().count[threadIdx.x / 32] = elements[0];
  }
  DEVICE void run() {
    const int batches = (rows + BATCH - 1) / BATCH;
    affine.keep(team);
#pragma unroll 1
    for (int batch = 0; batch < batches + LAG; ++batch) {
      if (batch < batches) measure(batch);
      if (batch >= LAG) finish(batch - LAG);
    }
  }

 private:
  DEVICE Vector vector(int batch, int b, int c, int tensor) const { return place(batch, b, tensor)[c * THREADS_PER_ROW + team.t]; }

  /// Hands on the warp's sums about a pivot: its first element. For float32 it is the mean of its threads' first ones, since
  /// sums about one element lose digits where that lies far from the others.
  DEVICE void measure(int batch) {
    await(hall().copied[batch % RING], batch / RING);
    const int lane = threadIdx.x % 32;
    auto& found = hall().found[batch % TURNS][threadIdx.x / 32];
    float pivot[BATCH], sums[BATCH * WORDS];
#pragma unroll
    for (int b = 0; b < BATCH; ++b) pivot[b] = own.has(0) && batch * BATCH + b < rows ? vector(batch, b, 0, 0)[0] : 0.0f;
    if (sizeof(T) == 4) warp_reduce<Sum>(pivot);
    const float share = 1.0f / max(1, __popc(__ballot_sync(0xffffffffu, own.has(0))));
#pragma unroll
    for (int b = 0; b < BATCH; ++b) pivot[b] = sizeof(T) == 4 ? pivot[b] * share : __shfl_sync(0xffffffffu, pivot[b], 0);
#pragma unroll
    for (int b = 0; b < BATCH; ++b) {
      float squares = 0, g_sum = 0, gx = 0, x = 0;
#pragma unroll
      for (int c = 0; c < CHUNKS; ++c) {
        if (!own.has(c) || batch * BATCH + b >= rows) continue;
        const Vector v = vector(batch, b, c, 0), u = vector(batch, b, c, 1), w = affine.get(own, c);
#pragma unroll
        for (int e = 0; e < VEC; ++e) {
          const float deviation = v[e] - pivot[b], g = u[e] * w[e];
          squares += deviation * deviation;
          g_sum += g;
          gx += g * deviation;
          x += deviation;
        }
      }
      sums[b * WORDS] = squares;
      sums[b * WORDS + 1] = g_sum;
      sums[b * WORDS + 2] = gx;
      sums[b * WORDS + 3] = x;
      if (lane == 0) found[b][WORDS] = pivot[b];
    }
    const float mine = fold<BATCH * WORDS>(sums, lane);
    constexpr int LANES = 32 / (BATCH * WORDS);
    if (lane % LANES == 0) found[lane / LANES / WORDS][lane / LANES % WORDS] = mine;
    __syncwarp();
    if (lane == 0) arrive(hall().measured[batch % TURNS]);
  }
  /// Writes a batch, and leaves its place to the one that comes next.
  DEVICE void finish(int batch) {
    await(hall().answered[batch % TURNS], batch / TURNS);
#pragma unroll
    for (int b = 0; b < BATCH; ++b) {
      const int row = batch * BATCH + b;
      if (row >= rows) break;
      const float4 total = hall().totals[row % SLOTS];
      Lane lane = own;
      lane.base = first_element(row);
      ::write([&](int c, int tensor) { return vector(batch, b, c, tensor); }, affine, dx, lane, {{total.x, total.y}, total.z, total.w}, columns);
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(hall().freed[batch % RING]);
    if (batch % SETTLE == SETTLE - 1) columns.settle();
  }
};

#if DIRECT
#define SUMS_OF_COLUMNS T *__restrict__ dweight, T *__restrict__ dbias
#else
#define SUMS_OF_COLUMNS float* __restrict__ shares
#endif
extern "C" __global__ void __launch_bounds__(BLOCK + 128, BLOCKS_PER_SM)
    kernel(const T* __restrict__ x, const T* __restrict__ dy, const T* __restrict__ weight, T* __restrict__ dx, SUMS_OF_COLUMNS,
           Tagged* __restrict__ words, float eps, long long rows) {
  const int group = blockIdx.x / OWNERS, groups = gridDim.x / OWNERS;
  const int mine = group < rows ? (int)((rows - group + groups - 1) / groups) : 0;
  if (threadIdx.x == BLOCK) {
    for (int i = 0; i < RING; ++i) init(hall().copied[i], 1), init(hall().freed[i], WARPS);
    for (int i = 0; i < TURNS; ++i) init(hall().measured[i], WARPS), init(hall().answered[i], 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  Owner owner(weight, dx, mine);
  if (threadIdx.x < BLOCK) owner.count();
  __syncthreads();
  const Exchange exchange(words);
  const Servant servant{exchange, mine};
  if (threadIdx.x >= BLOCK + 96) return servant.copy({x, dy});
  if (threadIdx.x >= BLOCK + 64) return servant.speak();
  if (threadIdx.x >= BLOCK + 32) return servant.listen();
  if (threadIdx.x >= BLOCK) return exchange.add_up(mine, eps);
  owner.run();
#if DIRECT
  owner.columns.add_up(owner.team, [&](const Lane& lane, int c, const float (&sums)[2][VEC]) {
    put(dweight, lane, c, sums[0]);
    put(dbias, lane, c, sums[1]);
  });
#else
  owner.columns.store(shares + (long long)group * 2 * COLS, owner.team);
#endif
}

/// No word of the exchange belongs to a row.
extern "C" __global__ void __launch_bounds__(256) clear(Tagged* words, long long count) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < count) words[i] = 0;
}
