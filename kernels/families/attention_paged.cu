// One query per sequence over keys in pages: y = softmax(q · kᵀ · scale) · v for q, y of [sequences, HEADS, DIM] and pools of
// [pages, PAGE, KEY_HEADS, DIM]. The keys of all sequences, however long those are, are dealt out in equal shares of consecutive rounds.
// A share's blocks walk over it side by side, each with OCTETS · 8 of the query heads that share a key head, so that keys and values are
// read once; each warp takes sixteen keys at a time, from memory straight into the operands of mma.sync. Lane l is number l % 4 of its
// quad, quad l / 4. `parts` holds what each share has of each sequence, and a second step joins them.
constexpr int GROUP = HEADS / KEY_HEADS;
constexpr int TILES = (GROUP + OCTETS * 8 - 1) / (OCTETS * 8);  // of the heads that share a key head
constexpr int TRACKS = KEY_HEADS * TILES;                       // blocks of a share
constexpr int ROUND = WARPS * 16;                               // keys that a block takes at once
constexpr int CHUNKS = (DIM + 31) / 32;  // of a key: a lane's 8 elements of each stand for two steps of 16, whose order is free
constexpr int STRIPS = (DIM + 63) / 64;  // of a value: eight quads have 8 elements each
constexpr int OUTPUTS = OCTETS * STRIPS * 16;  // of a lane

/// The heads of a block.
struct Track {
  int key_head, first, count;
  DEVICE Track(int index)
      : key_head(index % KEY_HEADS), first(key_head * GROUP + index / KEY_HEADS * OCTETS * 8), count(min((key_head + 1) * GROUP - first, OCTETS * 8)) {}
};

/// What is relative to `top` made relative to `common`, which is no smaller.
DEVICE float factor(float top, float common) { return top == common ? 1.0f : power_of_two(top - common); }
/// Keys that a sequence has.
DEVICE int length_of(long long last) { return (int)min(max(last, 0ll), TABLE * PAGE - 1ll) + 1; }
/// Both halves of two words, as pairs of what stands at the same place.
DEVICE unsigned low_halves(unsigned a, unsigned b) { return __byte_perm(a, b, 0x5410); }
DEVICE unsigned high_halves(unsigned a, unsigned b) { return __byte_perm(a, b, 0x7632); }
/// The sum of a pair as it was rounded.
DEVICE float sum_of(unsigned pair) {
  const T* two = (const T*)&pair;
  return (float)two[0] + (float)two[1];
}
DEVICE uint4 load_unit(const T* row, int element) { return element < DIM ? __ldg((const uint4*)(row + element)) : uint4{}; }

/// What a warp has of the heads: a lane's sums are those of head l / 4, its outputs of heads 2 (l % 4) and the next.
struct Running {
  float top[OCTETS], total[OCTETS];
  float out[OCTETS][STRIPS * 4][4];  // fragments of 16 elements × 8 heads

  DEVICE Running() {
    clear(out);
    UNROLLED for (int o = 0; o < OCTETS; ++o) top[o] = __int_as_float(0xff800000), total[o] = 0;
  }
  /// Scores of sixteen keys, of which `count` exist, into weights; a lane's keys are 2 (l % 4) and the next, and those 8 behind.
  DEVICE void weigh(const float (&scores)[2][4], float scale_log2, int count, unsigned (&weights)[OCTETS][2]) {
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
        weights[o][half] = pack(power_of_two(scaled[half * 2] - top[o]), power_of_two(scaled[half * 2 + 1] - top[o]));
        total[o] += sum_of(weights[o][half]);
      }
    }
  }
  /// All outputs, in one order for all warps.
  template <class Use>
  DEVICE void visit(const Use& use) {
    UNROLLED for (int i = 0; i < OUTPUTS; ++i) use(i, out[i / (STRIPS * 16)][i / 4 % (STRIPS * 4)][i % 4]);
  }
  /// Outputs relative to other maxima.
  DEVICE void rescale(const float (&tops)[OCTETS]) {
    UNROLLED for (int o = 0; o < OCTETS; ++o) scale(o, factor(top[o], tops[o]));
  }
  /// Outputs of an octet, by what the lanes that have a head's sums say.
  DEVICE void scale(int o, float by) {
    const int first = threadIdx.x % 4 * 8;
    const float both[2] = {__shfl_sync(0xffffffffu, by, first), __shfl_sync(0xffffffffu, by, first + 4)};
    UNROLLED for (int d = 0; d < STRIPS * 4; ++d) {
      UNROLLED for (int e = 0; e < 4; ++e) out[o][d][e] *= both[e % 2];
    }
  }
  DEVICE void add(const unsigned (&weights)[OCTETS][2], const uint4 (&values)[STRIPS][4]) {
    UNROLLED for (int s = 0; s < STRIPS; ++s) {
      UNROLLED for (int i = 0; i < 4; ++i) {
        const auto word = [&](int row) { return i == 0 ? values[s][row].x : i == 1 ? values[s][row].y : i == 2 ? values[s][row].z : values[s][row].w; };
        const unsigned a[4] = {low_halves(word(0), word(1)), high_halves(word(0), word(1)), low_halves(word(2), word(3)),
                               high_halves(word(2), word(3))};
        UNROLLED for (int o = 0; o < OCTETS; ++o) multiply(out[o][s * 4 + i], a, weights[o][0], weights[o][1]);
      }
    }
  }
};

/// Where keys begin in a pool, of one sequence and one key head.
struct Pages {
  const long long* table;
  int head, pages;
  /// Lane l looks for key first + l % 16, or the last one that counts.
  DEVICE int row_of(int first, int length) const {
    const int key = min(first + (int)threadIdx.x % 16, length - 1);
    const int page = (int)min(max(__ldg(table + key / PAGE), 0ll), pages - 1ll);
    return page * PAGE + key % PAGE;
  }
  DEVICE const T* at(const T* pool, int row) const { return pool + ((long long)row * KEY_HEADS + head) * DIM; }
  DEVICE void load_keys(const T* pool, int row, uint4 (&keys)[2][CHUNKS]) const {
    const int lane = threadIdx.x % 32;
    UNROLLED for (int half = 0; half < 2; ++half) {
      const T* from = at(pool, __shfl_sync(0xffffffffu, row, lane / 4 + half * 8));
      UNROLLED for (int j = 0; j < CHUNKS; ++j) keys[half][j] = load_unit(from, j * 32 + lane % 4 * 8);
    }
  }
  DEVICE void load_values(const T* pool, int row, uint4 (&values)[STRIPS][4]) const {
    const int lane = threadIdx.x % 32;
    UNROLLED for (int i = 0; i < 4; ++i) {
      const T* from = at(pool, __shfl_sync(0xffffffffu, row, lane % 4 * 2 + i % 2 + i / 2 * 8));
      UNROLLED for (int s = 0; s < STRIPS; ++s) values[s][i] = load_unit(from, s * 64 + lane / 4 * 8);
    }
  }
};

/// The left operands of all warps, lane by lane.
using Queries = uint4[OCTETS][CHUNKS][32];
DEVICE void load_queries(Queries& queries, const T* q, int heads) {
  for (int i = threadIdx.x; i < OCTETS * CHUNKS * 32; i += WARPS * 32) {
    const int lane = i % 32, mine = i / (CHUNKS * 32) * 8 + lane / 4;
    queries[i / (CHUNKS * 32)][i / 32 % CHUNKS][lane] = mine < heads ? load_unit(q + mine * DIM, i / 32 % CHUNKS * 32 + lane % 4 * 8) : uint4{};
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
      const unsigned first[4] = {q.x, other.x, q.y, other.y}, second[4] = {q.z, other.z, q.w, other.w};
      multiply(scores[half], first, k.x, k.y);
      multiply(scores[half], second, k.z, k.w);
    }
  }
}

/// Where the warps of a block put together what they found, always in the same order.
struct Meeting {
  float tops[WARPS][OCTETS * 8], totals[WARPS][OCTETS * 8];
  float out[WARPS / 2][OUTPUTS][32];

  /// Of all warps; afterwards the first one's `running` has the sums of all.
  DEVICE void join(Running& running, float (&tops_of_all)[OCTETS], float (&totals_of_all)[OCTETS]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    UNROLLED for (int o = 0; o < OCTETS; ++o) {
      float total = running.total[o];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      if (lane % 4 == 0) tops[warp][o * 8 + lane / 4] = running.top[o], totals[warp][o * 8 + lane / 4] = total;
    }
    __syncthreads();
    UNROLLED for (int o = 0; o < OCTETS; ++o) {
      const int head = o * 8 + lane / 4;
      tops_of_all[o] = running.top[o], totals_of_all[o] = 0;
      UNROLLED for (int w = 0; w < WARPS; ++w) tops_of_all[o] = fmaxf(tops_of_all[o], tops[w][head]);
      UNROLLED for (int w = 0; w < WARPS; ++w) totals_of_all[o] += totals[w][head] * factor(tops[w][head], tops_of_all[o]);
    }
    running.rescale(tops_of_all);
    UNROLLED for (int half = WARPS / 2; half > 0; half /= 2) {
      if (warp >= half && warp < 2 * half) running.visit([&](int i, float& one) { out[warp - half][i][lane] = one; });
      __syncthreads();
      if (warp < half) running.visit([&](int i, float& one) { one += out[warp][i][lane]; });
      __syncthreads();
    }
  }
};

/// The rounds of all sequences, dealt out.
struct Shares {
  const long long* last;
  int sequences, count;
  long long rounds = 0;

  DEVICE Shares(const long long* last, int sequences, int count) : last(last), sequences(sequences), count(count) {
    for (int base = 0; base < sequences; base += 32) rounds += __reduce_add_sync(0xffffffffu, rounds_of(base + threadIdx.x % 32));
    this->count = (int)min((long long)count, rounds);
  }
  DEVICE unsigned rounds_of(int sequence) const { return sequence < sequences ? (length_of(last[sequence]) + ROUND - 1) / ROUND : 0; }
  DEVICE long long begin_of(int share) const { return rounds * share / count; }
  DEVICE int owner_of(long long round) const { return (int)(((round + 1) * count - 1) / rounds); }
  /// The sequence that a round belongs to; `before`: the rounds of all sequences before that.
  DEVICE int sequence_of(long long round, long long& before) const {
    before = 0;
    for (int base = 0;; base += 32) {
      const int lane = threadIdx.x % 32;
      const unsigned mine = rounds_of(base + lane);
      unsigned sum = mine;  // of all up to this lane's
      UNROLLED for (int offset = 1; offset < 32; offset *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffffu, sum, offset);
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

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    decode(const T* __restrict__ q, const T* __restrict__ k_pool, const T* __restrict__ v_pool, const long long* __restrict__ table,
           const long long* __restrict__ last, float* __restrict__ parts, float2* __restrict__ sums, int2* __restrict__ spans, int sequences,
           int pages, float scale_log2) {
  __shared__ Meeting meeting;
  __shared__ Queries queries;
  const Track track(blockIdx.x % TRACKS);
  const int share = blockIdx.x / TRACKS, lane = threadIdx.x % 32;
  const Shares shares(last, sequences, gridDim.x / TRACKS);
  if (share >= shares.count) return;
  long long round = shares.begin_of(share), before;
  const long long stop = shares.begin_of(share + 1);
  for (int sequence = shares.sequence_of(round, before); round < stop; ++sequence) {
    const int length = length_of(last[sequence]);
    const long long next = before + (length + ROUND - 1) / ROUND;  // the first of the next sequence
    const int begin = (int)(round - before) * ROUND, end = stop < next ? (int)(stop - before) * ROUND : length;
    const Pages places{table + (long long)sequence * TABLE, track.key_head, pages};
    int at = begin + threadIdx.x / 32 * 16;
    int row = places.row_of(at, length), next_row = places.row_of(at + ROUND, length);  // looked up before they are needed
    uint4 keys[2][CHUNKS], values[STRIPS][4];
    places.load_keys(k_pool, row, keys);
    load_queries(queries, q + ((long long)sequence * HEADS + track.first) * DIM, track.count);
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
    float tops[OCTETS], totals[OCTETS];
    meeting.join(running, tops, totals);
    const int part = share + sequence;  // grows along the rounds, so that it is nobody else's
    const long long place = (long long)part * TRACKS + blockIdx.x % TRACKS;
    if (threadIdx.x < 32) {
      running.visit([&](int i, float& one) {
        if (i / (STRIPS * 16) * 8 + lane % 4 * 2 + i % 2 < track.count) parts[(place * OUTPUTS + i) * 32 + lane] = one;
      });
      UNROLLED for (int o = 0; o < OCTETS; ++o) {
        if (lane % 4 == 0) sums[(place * OCTETS + o) * 8 + lane / 4] = make_float2(tops[o], totals[o]);
      }
    }
    if (begin == 0 && blockIdx.x % TRACKS == 0 && threadIdx.x == 0) spans[sequence] = make_int2(part, sequence + shares.owner_of(next - 1) + 1);
    round = before = next;
  }
}

/// The heads of a track of one sequence, sixteen of a lane's outputs for each block: the parts, in their order.
extern "C" __global__ void __launch_bounds__(512)
    combine(const float* __restrict__ parts, const float2* __restrict__ sums, const int2* __restrict__ spans, T* __restrict__ y) {
  const Track track(blockIdx.x % TRACKS);
  const int i = blockIdx.y * 16 + threadIdx.x / 32, lane = threadIdx.x % 32;
  const int head = i / (STRIPS * 16) * 8 + lane % 4 * 2 + i % 2, element = i / 16 % STRIPS * 64 + lane / 4 * 8 + i / 4 % 4 * 2 + i / 2 % 2;
  if (head >= track.count || element >= DIM) return;
  const int2 span = spans[blockIdx.x / TRACKS];
  float top = __int_as_float(0xff800000), total = 0, out = 0;
#pragma unroll 8
  for (int part = span.x; part < span.y; ++part) {
    const long long place = (long long)part * TRACKS + blockIdx.x % TRACKS;
    const float2 sum = sums[place * OCTETS * 8 + head];
    const float common = fmaxf(top, sum.x), keep = factor(top, common), scale = factor(sum.x, common);
    total = total * keep + sum.y * scale;
    out = out * keep + parts[(place * OUTPUTS + i) * 32 + lane] * scale;
    top = common;
  }
  y[((long long)(blockIdx.x / TRACKS) * HEADS + track.first + head) * DIM + element] = T(out / total);
}
