// y[m, n] = x[m, k] · w[n, k] on Hopper: widened weights are the operand of wgmma that lies in registers, TILE_M rows of x the one in shared
// memory, in the order of k in which a lane finds its weights: 32 neighbours of every DEPTH. With SPLIT > 1 the blocks of a
// cluster each have a part of k.
constexpr int DEPTH = 128;               // of k: a stretch
constexpr int UNITS = FOUR_BITS ? 4 : 8;  // of 16 bytes: a row of weights of a stretch
constexpr int THREADS = GROUPS * 128, ROWS = GROUPS * FRAGMENTS * 64;
constexpr int X_BYTES = TILE_M * DEPTH * 2, STAGE_BYTES = X_BYTES + ROWS * UNITS * 16;
constexpr int PITCH = ROWS + 4;  // of sums
/// Of x: what a thread loads of a stretch, four units each.
constexpr int ITEMS = (TILE_M * 4 + THREADS - 1) / THREADS;
typedef float Sums[FRAGMENTS][TILE_M / 8][4];

DEVICE uint4 load_shared(unsigned from) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(from));
  return v;
}
DEVICE void store_shared(unsigned to, unsigned x, unsigned y, unsigned z, unsigned w) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

/// Where this block's tile begins.
struct Origin {
  long long row;
  int token;
};
/// A lane's first row of fragment f; the other one is eight below.
DEVICE int fragment_row(int f) { return (threadIdx.x / 128 * FRAGMENTS + f) * 64 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4; }
/// Lanes of two rows read at once, in different banks.
DEVICE int weight_at(int row, int unit) { return X_BYTES + (row * UNITS + (FOUR_BITS ? unit : unit ^ row & 1)) * 16; }

DEVICE void copy_weights(unsigned to, const unsigned char* weights, Origin origin, int at) {
#pragma unroll
  for (int i = 0; i < ROWS * UNITS / THREADS; ++i) {
    const int unit = threadIdx.x + i * THREADS, row = unit / UNITS;
    copy_async(to + weight_at(row, unit % UNITS), weights + (min(origin.row + row, N - 1ll) * (K / DEPTH) + at) * (UNITS * 16) + unit % UNITS * 16, 16);
  }
}

/// Eight neighbours of each of a token's four lanes.
struct Item {
  uint4 of[4];
};
DEVICE int token_of(int item) { return item / 32 * 8 + item % 8; }
DEVICE void load_x(const T* x, Origin origin, int at, Item (&items)[ITEMS]) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int item = threadIdx.x + i * THREADS, token = origin.token + token_of(item);
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const T* from = x + (long long)token * K + at * DEPTH + part * 32 + item / 8 % 4 * 8;
      items[i].of[part] = item < TILE_M * 4 && token < M ? *(const uint4*)from : make_uint4(0, 0, 0, 0);
    }
  }
}
/// A pair of eight elements, in the order in which words are widened.
DEVICE unsigned pair_of(uint4 eight, int pair) {
  const unsigned words[4] = {eight.x, eight.y, eight.z, eight.w};
  return FOUR_BITS ? __byte_perm(words[pair / 2], words[pair / 2 + 2], pair % 2 ? 0x7632 : 0x5410) : words[pair];
}
/// Two pairs of each lane make 16 of k, lanes side by side in either half.
DEVICE void store_x(unsigned to, const Item (&items)[ITEMS]) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int item = threadIdx.x + i * THREADS, token = token_of(item), eight = item / 8 % 4;
    if (item >= TILE_M * 4) break;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const uint4(&of)[4] = items[i].of;
      const int unit = (eight * 4 + pair) % 8 ^ token & 7;
      store_shared(to + (eight / 2 * TILE_M + token) * 128 + unit * 16, pair_of(of[0], pair), pair_of(of[1], pair), pair_of(of[2], pair), pair_of(of[3], pair));
    }
  }
}

/// A group's scale for each row of this lane's weights.
DEVICE void load_scales(const T* scales, Origin origin, int at, unsigned (&to)[FRAGMENTS * 2]) {
#pragma unroll
  for (int i = 0; FOUR_BITS && i < FRAGMENTS * 2; ++i) {
    const long long row = min(origin.row + fragment_row(i / 2) + i % 2 * 8, N - 1ll);
    to[i] = *(const unsigned short*)(scales + row * (K / GROUP) + (at * DEPTH + threadIdx.x % 4 * 32) / GROUP) * 0x10001u;
  }
}

/// Starts the products of half a stretch, 64 of k, out of `left`, which earlier ones may still be reading.
DEVICE void multiply_half(Sums& sums, unsigned (&left)[FRAGMENTS * 4][4], unsigned from, int half, const unsigned (&scales)[FRAGMENTS * 2]) {
  constexpr int WORDS = FOUR_BITS ? 2 : 4;
  wait_products<1>();
  hold(left);
#pragma unroll
  for (int i = 0; i < FRAGMENTS * 2; ++i) {
    const int unit = threadIdx.x % 4 * (UNITS / 4) + (FOUR_BITS ? 0 : half);
    const uint4 loaded = load_shared(from + weight_at(fragment_row(i / 2) + i % 2 * 8, unit));
    const unsigned all[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
#pragma unroll
    for (int word = 0; word < WORDS; ++word) {
      unsigned pairs[PAIRS];
      widen(all[FOUR_BITS ? half * 2 + word : word], scales[i], pairs);
#pragma unroll
      for (int p = 0; p < PAIRS; ++p) left[i / 2 * 4 + word * PAIRS / 2 + p / 2][p % 2 * 2 + i % 2] = pairs[p];
    }
  }
  start_products();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int f = 0; f < FRAGMENTS; ++f) multiply(sums[f], left[f * 4 + step], operand(from + half * TILE_M * 128 + step * 32));
  }
  commit_products();
}

/// Sums of four rows for a token, of all blocks that have a part of k.
DEVICE float4 sum_of_four(unsigned at) {
#if SPLIT > 1
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
  for (int rank = 0; rank < SPLIT; ++rank) {
    const float4 more = load_remote(at_rank(at, rank));
    sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
  }
  return sum;
#else
  const uint4 v = load_shared(at);
  return make_float4(__uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z), __uint_as_float(v.w));
#endif
}
DEVICE void meet() {
#if SPLIT > 1
  wait_for_cluster();
#else
  __syncthreads();
#endif
}

DEVICE void store(unsigned char* shared, const Sums& sums, const T* scales, T* y, Origin origin) {
#pragma unroll
  for (int i = 0; i < FRAGMENTS * TILE_M / 2; ++i) {
    const int f = i / (TILE_M / 2), j = i / 4 % (TILE_M / 8), e = i % 4;
    ((float*)shared)[(j * 8 + threadIdx.x % 4 * 2 + e % 2) * PITCH + fragment_row(f) + e / 2 * 8] = sums[f][j][e];
  }
  meet();
  const int tokens = min(TILE_M, M - origin.token);
  for (int i = blockIdx.y * THREADS + threadIdx.x; i < tokens * (ROWS / 4); i += SPLIT * THREADS) {
    const int token = i / (ROWS / 4), below = i % (ROWS / 4) * 4;
    const long long row = origin.row + below;
    const float4 four = sum_of_four((unsigned)__cvta_generic_to_shared(shared) + (token * PITCH + below) * 4);
    float sum[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int e = 0; !FOUR_BITS && e < 4; ++e) sum[e] *= float(scales[min(row + e, N - 1ll)]);
    T* to = y + (origin.token + token) * (long long)N + row;
    if (N % 4 == 0) {
      if (row < N) *(uint2*)to = make_uint2(pack(sum[0], sum[1]), pack(sum[2], sum[3]));
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (row + e < N) to[e] = T(sum[e]);
    }
  }
  meet();
}

extern "C" __global__ void __launch_bounds__(THREADS) product(const T* __restrict__ x, const unsigned char* __restrict__ weights,
                                                              const T* __restrict__ scales, T* __restrict__ y) {
  extern __shared__ __align__(1024) unsigned char buffers[];
  const unsigned shared = (unsigned)__cvta_generic_to_shared(buffers);
  constexpr int TILES = (M + TILE_M - 1) / TILE_M;
  const Origin origin = {(long long)(blockIdx.x / TILES) * ROWS, (int)(blockIdx.x % TILES) * TILE_M};
  const int first = K / DEPTH * blockIdx.y / SPLIT, last = K / DEPTH * (blockIdx.y + 1) / SPLIT;
  Sums sums;
  clear(sums);
  settle(sums);
  unsigned left[2][FRAGMENTS * 4][4] = {}, scale[FRAGMENTS * 2] = {}, next_scale[FRAGMENTS * 2] = {};
  Item items[ITEMS];
  load_x(x, origin, first, items);
  load_scales(scales, origin, first, next_scale);
  for (int at = first; at < first + STAGES - 1; ++at) {
    if (at < last) copy_weights(shared + (at - first) * STAGE_BYTES, weights, origin, at);
    commit_copies();
  }
  store_x(shared, items);
  for (int at = first, stage = 0; at < last; ++at) {
    const unsigned here = shared + stage * STAGE_BYTES, behind = shared + (stage == 0 ? STAGES - 1 : stage - 1) * STAGE_BYTES;
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    wait_copies<STAGES - 2>();
    show_to_tensor_cores();
    __syncthreads();
    if (at + STAGES - 1 < last) copy_weights(behind, weights, origin, at + STAGES - 1);
    commit_copies();
#pragma unroll
    for (int i = 0; i < FRAGMENTS * 2; ++i) scale[i] = next_scale[i];
    const int next = min(at + 1, last - 1);
    load_x(x, origin, next, items);
    load_scales(scales, origin, next, next_scale);
    multiply_half(sums, left[0], here, 0, scale);
    multiply_half(sums, left[1], here, 1, scale);
    store_x(shared + stage * STAGE_BYTES, items);
  }
  wait_products<0>();
  settle(sums);
  __syncthreads();
  store(buffers, sums, scales, y, origin);
}
