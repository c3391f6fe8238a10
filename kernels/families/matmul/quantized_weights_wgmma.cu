// y[m, n] = x[m, k] · w[n, k] on Hopper: a thread fetches tiles of weights and of TILE_M rows of x
// by tensor maps; warpgroups widen weights in registers, which wgmma reads as its left operand.
// Each group of 4-bit weights is summed separately and then scaled, so that only sums are rounded.
// With SPLIT > 1 the blocks of a cluster each have a part of k.
constexpr int WIDTH = FOUR_BITS ? 64 : 128;  // bytes of a row of a tile of weights
constexpr int DEPTH = 128;                   // elements along k of a tile
constexpr int UNIT = FOUR_BITS && GROUP % 64 != 0
                         ? 32
                         : 64;  // elements along k that a lane widens at once
constexpr int UNITS = DEPTH / UNIT;
constexpr int CONSUMERS = GROUPS * 128, THREADS = CONSUMERS + 32, ROWS = GROUPS * FRAGMENTS * 64;
constexpr int X_BYTES = TILE_M * DEPTH * 2;
constexpr int PITCH = ROWS + 4;  // of sums
constexpr int BARRIERS = STAGES * STAGE_BYTES;
typedef Ring<STAGES, STAGE_BYTES> Buffers;
typedef float Sums[FRAGMENTS][TILE_M / 8][4];
/// Left operands of a unit.
typedef unsigned Left[UNIT / 16 * FRAGMENTS][4];

DEVICE uint4 load_shared(unsigned from) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(from));
  return v;
}

/// This block's tile, and its tiles along k.
struct Work {
  long long row;
  int token, first, last;
};
/// A lane's first row of fragment f; the other one is eight below.
DEVICE int fragment_row(int f) {
  return (threadIdx.x / 128 * FRAGMENTS + f) * 64 + threadIdx.x / 32 % 4 * 16 +
         threadIdx.x % 32 / 4;
}

DEVICE void fetch(Buffers ring, const CUtensorMap& x, const CUtensorMap& weights, Work work) {
  for (int at = work.first; at < work.last; ++at, ring.step()) {
    ring.await_free();
    expect_bytes(ring.full(), STAGE_BYTES);
    copy_box(ring.buffer() + X_BYTES, weights, at * WIDTH, (int)work.row, 0, ring.full(),
             EVICT_FIRST);
    UNROLLED for (int half = 0; half < 2; ++half)
        copy_box(ring.buffer() + half * TILE_M * 128, x, at * DEPTH + half * 64, work.token, 0,
                 ring.full(), EVICT_NORMAL);
  }
}

/// Widens this lane's pairs out of each eight weights of its rows: neighbours, as x has them.
DEVICE void load_left(Left& left, unsigned buffer, int unit) {
  const int lane = threadIdx.x % 32;
  const unsigned pick = FOUR_BITS ? 0x4440 + lane % 4 : 0x0100 + lane % 4 * 0x0202;
  constexpr int LOADS = UNIT * WIDTH / DEPTH / 16;
  uint4 loaded[FRAGMENTS * 2][LOADS];
  UNROLLED for (int i = 0; i < FRAGMENTS * 2 * LOADS; ++i) {
    const int row = fragment_row(i / LOADS / 2) + i / LOADS % 2 * 8,
              at = (unit * LOADS + i % LOADS ^ lane / (FOUR_BITS ? 8 : 4)) * 16;
    loaded[i / LOADS][i % LOADS] = load_shared(buffer + X_BYTES + row * WIDTH + at);
  }
  UNROLLED for (int i = 0; i < FRAGMENTS * UNIT / 4; ++i) {
    const int step = i / 4 % (UNIT / 16), f = i / 4 / (UNIT / 16), row = f * 2 + i % 2,
              eight = step * 2 + i / 2 % 2;
    const uint4& words = loaded[row][eight / (FOUR_BITS ? 4 : 2)];
    const unsigned all[4] = {words.x, words.y, words.z, words.w};
    // A byte of four bits each comes to lie at two places, twelve bits apart.
    const unsigned bytes = FOUR_BITS
                               ? __byte_perm(all[eight % 4], 0, pick) * 0x1001
                               : __byte_perm(all[eight % 2 * 2], all[eight % 2 * 2 + 1], pick);
    left[f * (UNIT / 16) + step][i % 4] = widen(bytes);
  }
}

/// Scales of 4-bit weights: each of the four lanes of a row loads the scales of one of four tiles,
/// as pairs of units.
struct Scales {
  unsigned pairs[FRAGMENTS * 2][UNITS / 2];

  DEVICE void load(const T* scales, Work work, int at) {
    const unsigned short* from = (const unsigned short*)scales;
    const int depth = min(at + (int)threadIdx.x % 4, work.last - 1) * DEPTH;
    UNROLLED for (int i = 0; i < FRAGMENTS * UNITS; ++i) {
      const int row = i / (UNITS / 2), unit = i % (UNITS / 2) * 2;
      const long long first = min(work.row + fragment_row(row / 2) + row % 2 * 8, N - 1ll) *
                              (K / GROUP);
      pairs[row][unit / 2] = from[first + (depth + unit * UNIT) / GROUP] |
                             from[first + (depth + (unit + 1) * UNIT) / GROUP] << 16;
    }
  }
  /// The scales of a unit of one of the four tiles.
  DEVICE void give(int stretch, int unit, float (&to)[FRAGMENTS * 2]) const {
    UNROLLED for (int row = 0; row < FRAGMENTS * 2; ++row) {
      const unsigned pair = __shfl_sync(~0u, pairs[row][unit / 2], stretch, 4);
      to[row] = float(((const T*)&pair)[unit % 2]);
    }
  }
};
/// sums += scale · part
DEVICE void add_scaled(Sums& sums, const Sums& part, const float (&scale)[FRAGMENTS * 2]) {
  UNROLLED for (int i = 0; i < FRAGMENTS * TILE_M / 2; ++i) {
    const int f = i / (TILE_M / 2), j = i / 4 % (TILE_M / 8), e = i % 4;
    sums[f][j][e] = fmaf(scale[f * 2 + e / 2], part[f][j][e], sums[f][j][e]);
  }
}

/// Starts a unit's products.
DEVICE void multiply_unit(Sums& sums, const Left& left, unsigned buffer, int unit) {
  hold(left);
  start_products();
  UNROLLED for (int i = 0; i < UNIT / 16 * FRAGMENTS; ++i) {
    const int f = i / (UNIT / 16), at = unit * UNIT + i % (UNIT / 16) * 16;
    const unsigned long long right = operand(buffer + at / 64 * TILE_M * 128 + at % 64 * 2);
    if (FOUR_BITS && i % (UNIT / 16) == 0)
      multiply<false>(sums[f], left[i], right);
    else
      multiply(sums[f], left[i], right);
  }
  commit_products();
}

/// While the tensor cores multiply one unit, the next one is widened.
DEVICE void multiply_stretches(Buffers ring, Sums& sums, const T* scales, Work work) {
  Sums part;
  Left left[2] = {};
  Scales here, next;
  float scale[FRAGMENTS * 2];
  const auto finish = [&] {
    wait_products<0>();
    settle(FOUR_BITS ? part : sums);
    hold(left[0]), hold(left[1]);
    if (FOUR_BITS) add_scaled(sums, part, scale);
  };
  if (FOUR_BITS) next.load(scales, work, work.first);
  for (int at = work.first; at < work.last; ++at, ring.step()) {
    const int stretch = (at - work.first) % 4;
    if (FOUR_BITS && stretch == 0) {
      here = next;
      next.load(scales, work, at + 4);
    }
    ring.await_full();
    UNROLLED for (int unit = 0; unit < UNITS; ++unit) {
      load_left(left[unit % 2], ring.buffer(), unit);
      if (FOUR_BITS && unit > 0) finish();
      if (FOUR_BITS) here.give(stretch, unit, scale);
      multiply_unit(FOUR_BITS ? part : sums, left[unit % 2], ring.buffer(), unit);
    }
    finish();
    __syncwarp();  // every lane has read its part of the buffer
    ring.release();
  }
}

/// The sums of four rows for a token over all blocks that have a part of k; a single block is a
/// cluster of one.
DEVICE float4 sum_of_four(unsigned at) {
  float4 sum = make_float4(0, 0, 0, 0);
  UNROLLED for (int rank = 0; rank < SPLIT; ++rank) {
    const float4 more = load_remote(at_rank(at, rank));
    sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
  }
  return sum;
}

DEVICE void lay_out(unsigned char* shared, const Sums& sums) {
  UNROLLED for (int i = 0; i < FRAGMENTS * TILE_M / 2; ++i) {
    const int f = i / (TILE_M / 2), j = i / 4 % (TILE_M / 8), e = i % 4;
    ((float*)shared)[(j * 8 + threadIdx.x % 4 * 2 + e % 2) * PITCH + fragment_row(f) + e / 2 * 8] =
        sums[f][j][e];
  }
}
DEVICE void store(unsigned shared, const T* scales, T* y, Work work) {
  const int tokens = min(TILE_M, M - work.token);
  for (int i = blockIdx.y * THREADS + threadIdx.x; i < tokens * (ROWS / 4); i += SPLIT * THREADS) {
    const int token = i / (ROWS / 4), below = i % (ROWS / 4) * 4;
    const long long row = work.row + below;
    const float4 four = sum_of_four(shared + (token * PITCH + below) * 4);
    float sum[4] = {four.x, four.y, four.z, four.w};
    UNROLLED for (int e = 0; !FOUR_BITS && e < 4; ++e)
        sum[e] *= float(scales[min(row + e, N - 1ll)]);
    T* to = y + (work.token + token) * (long long)N + row;
    if (N % 4 == 0) {
      if (row < N) *(uint2*)to = make_uint2(pack(sum[0], sum[1]), pack(sum[2], sum[3]));
    } else {
      UNROLLED for (int e = 0; e < 4; ++e) if (row + e < N) to[e] = T(sum[e]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    product(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap weights,
            const T* __restrict__ scales, T* __restrict__ y) {
  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr int TILES = (M + TILE_M - 1) / TILE_M;
  const Work work = {(long long)(blockIdx.x / TILES) * ROWS, (int)(blockIdx.x % TILES) * TILE_M,
                     K / DEPTH * (int)blockIdx.y / SPLIT,
                     K / DEPTH * ((int)blockIdx.y + 1) / SPLIT};
  const Buffers ring(shared_address(shared), shared_address(shared) + BARRIERS);
  if (threadIdx.x == 0) ring.make(CONSUMERS / 32);
  __syncthreads();
  Sums sums;
  if (threadIdx.x < CONSUMERS) {
    clear(sums);
    settle(sums);
    multiply_stretches(ring, sums, scales, work);
  } else {
    if (threadIdx.x == CONSUMERS) fetch(ring, x, weights, work);
    __syncwarp();
  }
  __syncthreads();
  if (threadIdx.x < CONSUMERS) lay_out(shared, sums);
  wait_for_cluster();
  store(ring.first, scales, y, work);
  meet_cluster();
}
