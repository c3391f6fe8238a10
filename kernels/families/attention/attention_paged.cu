// Decoding with a paged key cache: one query per sequence, y = softmax(q · kᵀ · scale) · v for q, y
// of [sequences, HEADS, DIM] and pools of [pages, PAGE, KEY_HEADS, DIM]. The keys of all sequences,
// however long, are divided into equal shares of consecutive rounds. A round is WARPS * 16 keys;
// the blocks of a share work on it side by side, each with OCTETS · 8 of the query heads that share
// a key head, so that keys and values are read once; each warp takes sixteen keys at a time, from
// memory straight into the operands of mma.sync. Lane l is number l % 4 of its quad, quad l / 4. A
// share writes its part of each sequence to memory, and the block that finishes a sequence last
// joins the parts, always in the same order.
#include <cooperative_groups.h>
constexpr int GROUP = HEADS / KEY_HEADS;
// of the heads that share a key head
constexpr int TILES = (GROUP + OCTETS * 8 - 1) / (OCTETS * 8);
constexpr int TRACKS = KEY_HEADS * TILES;  // blocks of a share
constexpr int ROUND = WARPS * 16;          // keys that a block takes at once
// of a key: a lane's 8 elements of each stand for two steps of 16, whose order is free
constexpr int CHUNKS = (DIM + 31) / 32;
constexpr int STRIPS = (DIM + 63) / 64;  // of a value: eight quads have 8 elements each

/// The factor that turns weights relative to `top` into weights relative to `common`, which is no
/// smaller.
DEVICE float factor(float top, float common) {
  return top == common ? 1.0f : power_of_two(top - common);
}
/// Keys that a sequence has.
DEVICE int length_of(long long last) { return (int)min(max(last, 0ll), TABLE * PAGE - 1ll) + 1; }
/// The low, or the high, halves of two words.
DEVICE unsigned low_halves(unsigned a, unsigned b) { return __byte_perm(a, b, 0x5410); }
DEVICE unsigned high_halves(unsigned a, unsigned b) { return __byte_perm(a, b, 0x7632); }
DEVICE uint4 load_unit(const T* row, int element) {
  if (element >= DIM) return uint4{};
  return PASSING ? __ldcs((const uint4*)(row + element)) : __ldg((const uint4*)(row + element));
}

/// The state of a warp or a block, lane by lane.
struct Part {
  float2 sums[OCTETS][32];  // maximum and total
  float4 out[OCTETS][STRIPS * 4][32];
};

/// The state of a warp: a lane's maximum and total are its part of those of head l / 4, its outputs
/// those of heads 2 (l % 4) and the next.
struct Running {
  float top[OCTETS], total[OCTETS];
  float out[OCTETS][STRIPS * 4][4];  // fragments of 16 elements × 8 heads

  DEVICE Running() {
    clear(out);
    UNROLLED for (int o = 0; o < OCTETS; ++o) top[o] = __int_as_float(0xff800000), total[o] = 0;
  }
  /// Turns the scores of sixteen keys, of which `count` exist, into weights; a lane's keys are 2 (l
  /// % 4), the next, and those 8 behind.
  DEVICE void weigh(const float (&scores)[2][4], float scale_log2, int count,
                    unsigned (&weights)[OCTETS][2]) {
    constexpr float SLACK = 8;  // powers of two that the maximum may be too low
    const int lane = threadIdx.x % 32;
    UNROLLED for (int o = 0; o < OCTETS; ++o) {
      float scaled[4], peak = __int_as_float(0xff800000);
      UNROLLED for (int e = 0; e < 4; ++e) {
        const bool seen = e / 2 * 8 + lane % 4 * 2 + e % 2 < count;
        scaled[e] = seen ? scores[e / 2][o * 2 + e % 2] * scale_log2 : __int_as_float(0xff800000);
        peak = fmaxf(peak, scaled[e]);
      }
      peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 1));
      peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 2));
      const bool grown = peak > top[o] + SLACK;
      const float keep = grown ? power_of_two(top[o] - peak) : 1.0f;
      if (grown) top[o] = peak;
      total[o] *= keep;
      if (__any_sync(0xffffffffu, grown)) scale(o, keep);
      UNROLLED for (int half = 0; half < 2; ++half) {
        weights[o][half] = pack(power_of_two(scaled[half * 2] - top[o]),
                                power_of_two(scaled[half * 2 + 1] - top[o]));
        const T* rounded = (const T*)&weights[o][half];
        total[o] += (float)rounded[0] + (float)rounded[1];
      }
    }
  }
  DEVICE void store(Part& part) const {
    const int lane = threadIdx.x % 32;
    UNROLLED for (int o = 0; o < OCTETS; ++o) {
      part.sums[o][lane] = make_float2(top[o], total[o]);
      UNROLLED for (int d = 0; d < STRIPS * 4; ++d) part.out[o][d][lane] = make_float4(
          out[o][d][0], out[o][d][1], out[o][d][2], out[o][d][3]);
    }
  }
  DEVICE void absorb(const Part& part) {
    const int lane = threadIdx.x % 32;
    UNROLLED for (int o = 0; o < OCTETS; ++o) {
      const float2 sum = part.sums[o][lane];
      const float common = fmaxf(top[o], sum.x), keep = factor(top[o], common),
                  by = factor(sum.x, common);
      scale(o, keep);
      top[o] = common, total[o] = total[o] * keep + sum.y * by;
      const float2 both = of_heads(by);
      UNROLLED for (int d = 0; d < STRIPS * 4; ++d) {
        const float4 more = part.out[o][d][lane];
        out[o][d][0] += more.x * both.x, out[o][d][1] += more.y * both.y,
            out[o][d][2] += more.z * both.x, out[o][d][3] += more.w * both.y;
      }
    }
  }
  /// Stores the weighted means into the rows of y of `heads` heads.
  DEVICE void finish(T* y, int heads) const {
    const int lane = threadIdx.x % 32;
    UNROLLED for (int o = 0; o < OCTETS; ++o) {
      float sum = total[o];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const float2 both = of_heads(1.0f / sum);
      UNROLLED for (int i = 0; i < STRIPS * 8; ++i) {
        const int d = i / 2, e = i % 2, head = o * 8 + lane % 4 * 2 + e,
                  element = d / 4 * 64 + lane / 4 * 8 + d % 4 * 2;
        const float by = e == 0 ? both.x : both.y;
        if (head < heads && element < DIM)
          *(unsigned*)(y + head * DIM + element) = pack(out[o][d][e] * by, out[o][d][e + 2] * by);
      }
    }
  }
  /// Exchanges a factor per head: returns the factors of the two heads of this lane's outputs.
  static DEVICE float2 of_heads(float by) {
    const int first = threadIdx.x % 4 * 8;
    return make_float2(__shfl_sync(0xffffffffu, by, first),
                       __shfl_sync(0xffffffffu, by, first + 4));
  }
  /// Multiplies the outputs of an octet of heads.
  DEVICE void scale(int o, float by) {
    const float2 both = of_heads(by);
    UNROLLED for (int d = 0; d < STRIPS * 4; ++d) out[o][d][0] *= both.x, out[o][d][1] *= both.y,
        out[o][d][2] *= both.x, out[o][d][3] *= both.y;
  }
  DEVICE void add(const unsigned (&weights)[OCTETS][2], const uint4 (&values)[STRIPS][4]) {
    UNROLLED for (int s = 0; s < STRIPS; ++s) {
      UNROLLED for (int i = 0; i < 4; ++i) {
        const auto word = [&](int row) {
          return i == 0   ? values[s][row].x
                 : i == 1 ? values[s][row].y
                 : i == 2 ? values[s][row].z
                          : values[s][row].w;
        };
        const unsigned a[4] = {low_halves(word(0), word(1)), high_halves(word(0), word(1)),
                               low_halves(word(2), word(3)), high_halves(word(2), word(3))};
        UNROLLED for (int o = 0; o < OCTETS; ++o)
            multiply(out[o][s * 4 + i], a, weights[o][0], weights[o][1]);
      }
    }
  }
};

/// The addresses of the keys of one sequence and one key head in a pool.
struct Pages {
  const long long* table;
  int head, pages;
  /// Lane l looks up key first + l % 16, or the last valid one.
  DEVICE int row_of(int first, int length) const {
    const int key = min(first + (int)threadIdx.x % 16, length - 1);
    const int page = (int)min(max(__ldg(table + key / PAGE), 0ll), pages - 1ll);
    return page * PAGE + key % PAGE;
  }
  DEVICE const T* at(const T* pool, int row) const {
    return pool + ((long long)row * KEY_HEADS + head) * DIM;
  }
  DEVICE void load_keys(const T* pool, int row, uint4 (&keys)[2][CHUNKS]) const {
    const int lane = threadIdx.x % 32;
    UNROLLED for (int half = 0; half < 2; ++half) {
      const T* from = at(pool, __shfl_sync(0xffffffffu, row, lane / 4 + half * 8));
      UNROLLED for (int j = 0; j < CHUNKS; ++j)
          keys[half][j] = load_unit(from, j * 32 + lane % 4 * 8);
    }
  }
  DEVICE void load_values(const T* pool, int row, uint4 (&values)[STRIPS][4]) const {
    const int lane = threadIdx.x % 32;
    UNROLLED for (int i = 0; i < 4; ++i) {
      const T* from = at(pool, __shfl_sync(0xffffffffu, row, lane % 4 * 2 + i % 2 + i / 2 * 8));
      UNROLLED for (int s = 0; s < STRIPS; ++s)
          values[s][i] = load_unit(from, s * 64 + lane / 4 * 8);
    }
  }
};

/// The left operands of all warps, lane by lane.
using Queries = uint4[OCTETS][CHUNKS][32];
DEVICE void load_queries(Queries& queries, const T* q, int heads) {
  for (int i = threadIdx.x; i < OCTETS * CHUNKS * 32; i += WARPS * 32) {
    const int lane = i % 32, mine = i / (CHUNKS * 32) * 8 + lane / 4;
    queries[i / (CHUNKS * 32)][i / 32 % CHUNKS][lane] = mine < heads
                                                            ? load_unit(q + mine * DIM,
                                                                        i / 32 % CHUNKS * 32 +
                                                                            lane % 4 * 8)
                                                            : uint4{};
  }
  __syncthreads();
}

/// scores[16 heads, 2 · 8 keys] = queries · keysᵀ.
DEVICE void score(float (&scores)[2][4], const Queries& queries, const uint4 (&keys)[2][CHUNKS]) {
  UNROLLED for (int half = 0; half < 2; ++half) {
    UNROLLED for (int e = 0; e < 4; ++e) scores[half][e] = 0;
    UNROLLED for (int j = 0; j < CHUNKS; ++j) {
      const uint4 q = queries[0][j][threadIdx.x % 32], k = keys[half][j];
      const uint4 other = OCTETS == 2 ? queries[OCTETS - 1][j][threadIdx.x % 32] : uint4{};
      const unsigned first[4] = {q.x, other.x, q.y, other.y},
                     second[4] = {q.z, other.z, q.w, other.w};
      multiply(scores[half], first, k.x, k.y);
      multiply(scores[half], second, k.z, k.w);
    }
  }
}

/// Combines the states of a block's warps, always in the same order; the first warp has the result.
DEVICE void join(Running& running) {
  __shared__ Part parts[WARPS / 2];
  const int warp = threadIdx.x / 32;
  UNROLLED for (int half = WARPS / 2; half > 0; half /= 2) {
    if (warp >= half && warp < 2 * half) running.store(parts[warp - half]);
    __syncthreads();
    if (warp < half) running.absorb(parts[warp]);
    __syncthreads();
  }
}

/// The rounds of all sequences, divided into shares: the first `longer` shares have one round more.
struct Shares {
  const long long* last;
  int sequences, count, rounds = 0, least, longer;

  DEVICE Shares(const long long* last, int sequences, int most) : last(last), sequences(sequences) {
    for (int base = 0; base < sequences; base += 32)
      rounds += __reduce_add_sync(0xffffffffu, rounds_of(base + threadIdx.x % 32));
    count = min(most, rounds), least = rounds / count, longer = rounds % count;
  }
  DEVICE int rounds_of(int sequence) const {
    return sequence < sequences ? (length_of(last[sequence]) + ROUND - 1) / ROUND : 0;
  }
  DEVICE int begin_of(int share) const { return share * least + min(share, longer); }
  DEVICE int owner_of(int round) const {
    const int beyond = round - longer * (least + 1);
    return beyond < 0 ? round / (least + 1) : longer + beyond / least;
  }
  /// The sequence that a round belongs to; `before`: the rounds of all sequences before that.
  DEVICE int sequence_of(int round, int& before) const {
    before = 0;
    for (int base = 0;; base += 32) {
      const int lane = threadIdx.x % 32;
      const int mine = rounds_of(base + lane);
      int sum = mine;  // of all up to this lane's
      UNROLLED for (int offset = 1; offset < 32; offset *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, sum, offset);
        if (lane >= offset) sum += other;
      }
      const unsigned beyond = __ballot_sync(0xffffffffu, before + sum > round);
      if (beyond != 0) {
        before += __shfl_sync(0xffffffffu, sum - mine, __ffs(beyond) - 1);
        return base + __ffs(beyond) - 1;
      }
      before += __shfl_sync(0xffffffffu, sum, 31);
    }
  }
};

/// True if this block is the last of `count`. It then sees what the others wrote before they called
/// this.
DEVICE bool is_last(unsigned* ticket, int count) {
  __shared__ unsigned before;
  __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(ticket)
                 : "memory");
  __syncthreads();
  return before + 1 == count;
}

extern "C" __global__ void __launch_bounds__(WARPS * 32, SHARES)
    decode(const T* __restrict__ q, const T* __restrict__ k_pool, const T* __restrict__ v_pool,
           const long long* __restrict__ table, const long long* __restrict__ last, Part* parts,
           unsigned* tickets, T* __restrict__ y, int sequences, int pages, float scale_log2) {
  __shared__ Queries queries;
  const int track = blockIdx.x % TRACKS, share = blockIdx.x / TRACKS;
  const int key_head = track % KEY_HEADS,
            first_head = key_head * GROUP + track / KEY_HEADS * OCTETS * 8;
  const int heads = min((key_head + 1) * GROUP - first_head, OCTETS * 8);
  const Shares shares(last, sequences, gridDim.x / TRACKS);
  for (int i = blockIdx.x * WARPS * 32 + threadIdx.x; i < sequences * TRACKS;
       i += gridDim.x * WARPS * 32)
    tickets[i] = 0;
  unsigned cleared = cooperative_groups::this_grid().barrier_arrive();
  if (share >= shares.count) return;
  const int start = shares.begin_of(share), stop = shares.begin_of(share + 1);
  int round = start, before, next;
  for (int sequence = shares.sequence_of(round, before); round < stop;
       ++sequence, round = before = next) {
    const int length = length_of(last[sequence]);
    next = before + (length + ROUND - 1) / ROUND;  // the first of the next sequence
    const int end = stop < next ? (stop - before) * ROUND : length;
    const Pages places{table + (long long)sequence * TABLE, key_head, pages};
    int at = (round - before) * ROUND + threadIdx.x / 32 * 16;
    // page numbers, looked up ahead
    int row = places.row_of(at, length), next_row = places.row_of(at + ROUND, length);
    uint4 keys[2][CHUNKS], values[STRIPS][4];
    places.load_keys(k_pool, row, keys);
    // of the heads in q and y
    const long long place = ((long long)sequence * HEADS + first_head) * DIM;
    load_queries(queries, q + place, heads);
    Running running;
    for (; at < end; at += ROUND) {
      places.load_values(v_pool, row, values);
      row = next_row;
      next_row = places.row_of(at + 2 * ROUND, length);
      float scores[2][4];
      score(scores, queries, keys);
      if (at + ROUND < end) places.load_keys(k_pool, row, keys);
      unsigned weights[OCTETS][2];
      running.weigh(scores, scale_log2, end - at, weights);
      running.add(weights, values);
    }
    join(running);
    // This barrier was completed long before.
    if (round == start) cooperative_groups::this_grid().barrier_wait((unsigned&&)cleared);
    const int first_share = shares.owner_of(before),
              count = shares.owner_of(next - 1) + 1 - first_share;
    if (count > 1) {
      // Both numbers grow along the rounds, so that their sum is unique among all pairs that write
      // a part.
      const auto part = [&](int of_share) -> Part& {
        return parts[(long long)(of_share + sequence) * TRACKS + track];
      };
      if (threadIdx.x < 32) running.store(part(share));
      if (!is_last(tickets + (long long)sequence * TRACKS + track, count)) continue;
      running = Running();
      for (int i = threadIdx.x / 32; i < count; i += WARPS) running.absorb(part(first_share + i));
      join(running);
    }
    if (threadIdx.x < 32) running.finish(y + place, heads);
  }
}
