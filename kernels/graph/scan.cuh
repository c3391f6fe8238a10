// Scans (running sums) over a tile, in an order that does not depend on timing. `carry` is the
// total of the tiles before; afterwards it includes this tile.
#if ALONG_LINES
// Along rows: the threads of a line have ITEMS vectors each; vector number item * THREADS + thread
// of the tile.
constexpr int CARRIES = 1;
constexpr int TILE = THREADS * VEC * ITEMS;
constexpr int WARPS = THREADS / 32;
static_assert(ITEMS * WARPS <= 32, "one warp scans the totals of all");

template <class Op, class T>
DEVICE void scan_tile(T (&value)[ITEMS][VEC], T (&carry)[1], T neutral, int& slot) {
  __shared__ T totals[2][GROUPS][ITEMS * WARPS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x % THREADS / 32,
            line = threadIdx.x / THREADS;
  T before[ITEMS];
  slot ^= 1;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    T sum = value[item][0];
#pragma unroll
    for (int j = 1; j < VEC; ++j) sum = Op::of(sum, value[item][j]);
    sum = warp_scan<Op>(sum);
    const T left = __shfl_up_sync(0xffffffffu, sum, 1);
    before[item] = lane == 0 ? neutral : left;
    if (lane == 31) totals[slot][line][item * WARPS + warp] = sum;
  }
  __syncthreads();
  const T total = warp_scan<Op>(lane < ITEMS * WARPS ? totals[slot][line][lane] : neutral);
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int number = item * WARPS + warp;
    const T left = __shfl_sync(0xffffffffu, total, (number + 31) % 32);
    T running = Op::of(Op::of(carry[0], number == 0 ? neutral : left), before[item]);
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const T next = Op::of(running, value[item][j]);
      value[item][j] = EXCLUSIVE ? running : next;
      running = next;
    }
  }
  carry[0] = Op::of(carry[0], (T)__shfl_sync(0xffffffffu, total, ITEMS * WARPS - 1));
}
#else
// Across rows: THREADS neighbouring threads have VEC neighbouring lines each; GROUPS of them follow
// each other along the lines, with ITEMS elements of every line.
constexpr int CARRIES = VEC;
constexpr int TILE = GROUPS * ITEMS;

template <class Op, class T>
DEVICE void scan_tile(T (&value)[ITEMS][VEC], T (&carry)[VEC], T, int& slot) {
  __shared__ T totals[2][GROUPS][VEC][THREADS];
  const int thread = threadIdx.x % THREADS, group = threadIdx.x / THREADS;
  slot ^= 1;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    T sum = value[0][j];
#pragma unroll
    for (int item = 1; item < ITEMS; ++item) sum = Op::of(sum, value[item][j]);
    totals[slot][group][j][thread] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    T running = carry[j];
#pragma unroll
    for (int other = 0; other < GROUPS; ++other) {
      if (other < group) running = Op::of(running, totals[slot][other][j][thread]);
      carry[j] = Op::of(carry[j], totals[slot][other][j][thread]);
    }
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const T next = Op::of(running, value[item][j]);
      value[item][j] = EXCLUSIVE ? running : next;
      running = next;
    }
  }
}
#endif
