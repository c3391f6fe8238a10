// One query per sequence over keys in pages: y = softmax(q · kᵀ · scale) · v for q, y of [sequences, HEADS, DIM] and pools of
// [pages, PAGE, KEY_HEADS, DIM]. A block has PART keys of one sequence and OCTETS · 8 of the query heads that share a key head, so
// that keys and values are read once; each warp takes sixteen keys at a time, through STAGES buffers of its own, in which each lane finds
// what it copied itself: the operands of
// mma.sync. Lane l is number l % 4 of its quad, quad l / 4. Where a sequence has several parts they are joined by the blocks of a
// CLUSTER that has them all, or by a second kernel, for which `parts` holds what blocks found.
constexpr int GROUP = HEADS / KEY_HEADS;
constexpr int TILES = (GROUP + OCTETS * 8 - 1) / (OCTETS * 8);  // of the heads that share a key head
constexpr int PARTS = (TABLE * PAGE + PART - 1) / PART;
constexpr int CHUNKS = (DIM + 31) / 32;  // of a key: a lane's 8 elements of each stand for two steps of 16, whose order is free
constexpr int STRIPS = (DIM + 63) / 64;  // of a value: eight quads have 8 elements each
constexpr int FOURS = DIM / 4;           // of a head's outputs: what a thread joins
constexpr bool HERE = CLUSTER || PARTS == 1;  // without the second kernel
constexpr int PITCH = DIM + 4;           // of a head in shared memory: behind its outputs stand maximum and sum

DEVICE float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
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

/// A lane's units of a warp's buffers.
struct Ring {
  uint4 (*units)[2 * CHUNKS + 4 * STRIPS][32];
  DEVICE void fetch(int stage, int which, const T* row, int element) const {
    copy_async((unsigned)__cvta_generic_to_shared(&units[stage][which][threadIdx.x % 32]), element < DIM ? row + element : row, element < DIM ? 16 : 0);
  }
  DEVICE uint4 at(int stage, int which) const { return units[stage][which][threadIdx.x % 32]; }
};

/// What a warp has of the heads: a lane's sums are those of head l / 4, its outputs of heads 2 (l % 4) and the next.
struct Running {
  float top[OCTETS], total[OCTETS];
  float out[OCTETS][STRIPS * 4][4];  // fragments of 16 elements × 8 heads

  DEVICE Running() {
    clear(out);
#pragma unroll
    for (int o = 0; o < OCTETS; ++o) top[o] = __int_as_float(0xff800000), total[o] = 0;
  }
  /// Scores of sixteen keys, of which `count` exist, into weights; a lane's keys are 2 (l % 4) and the next, and those 8 behind.
  DEVICE void weigh(const float (&scores)[2][4], float scale_log2, int count, unsigned (&weights)[OCTETS][2]) {
    constexpr float SLACK = 8;  // powers of two that the maximum may be too low
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int o = 0; o < OCTETS; ++o) {
      float scaled[4], peak = __int_as_float(0xff800000);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
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
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        weights[o][half] = pack(power_of_two(scaled[half * 2] - top[o]), power_of_two(scaled[half * 2 + 1] - top[o]));
        total[o] += sum_of(weights[o][half]);
      }
    }
  }
  /// All outputs, in one order for all warps.
  template <class Use>
  DEVICE void visit(const Use& use) {
#pragma unroll
    for (int i = 0; i < OCTETS * STRIPS * 16; ++i) use(i, out[i / (STRIPS * 16)][i / 4 % (STRIPS * 4)][i % 4]);
  }
  /// Outputs of an octet, by what the lanes that have a head's sums say.
  DEVICE void scale(int o, float by) {
    const int first = threadIdx.x % 4 * 8;
    const float both[2] = {__shfl_sync(0xffffffffu, by, first), __shfl_sync(0xffffffffu, by, first + 4)};
#pragma unroll
    for (int d = 0; d < STRIPS * 4; ++d) {
#pragma unroll
      for (int e = 0; e < 4; ++e) out[o][d][e] *= both[e % 2];
    }
  }
  DEVICE void add(const unsigned (&weights)[OCTETS][2], const Ring& ring, int stage) {
#pragma unroll
    for (int s = 0; s < STRIPS; ++s) {
      uint4 values[4];
#pragma unroll
      for (int row = 0; row < 4; ++row) values[row] = ring.at(stage, 2 * CHUNKS + s * 4 + row);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto word = [&](int row) { return i == 0 ? values[row].x : i == 1 ? values[row].y : i == 2 ? values[row].z : values[row].w; };
        const unsigned a[4] = {low_halves(word(0), word(1)), high_halves(word(0), word(1)), low_halves(word(2), word(3)),
                               high_halves(word(2), word(3))};
#pragma unroll
        for (int o = 0; o < OCTETS; ++o) multiply(out[o][s * 4 + i], a, weights[o][0], weights[o][1]);
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
  /// Sixteen keys, as the right operands of two products, and values, as left operands, in the background.
  DEVICE void fetch(const Ring& ring, int stage, const T* k_pool, const T* v_pool, int row) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const T* from = at(k_pool, __shfl_sync(0xffffffffu, row, lane / 4 + half * 8));
#pragma unroll
      for (int j = 0; j < CHUNKS; ++j) ring.fetch(stage, half * CHUNKS + j, from, j * 32 + lane % 4 * 8);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const T* from = at(v_pool, __shfl_sync(0xffffffffu, row, lane % 4 * 2 + i % 2 + i / 2 * 8));
#pragma unroll
      for (int s = 0; s < STRIPS; ++s) ring.fetch(stage, 2 * CHUNKS + s * 4 + i, from, s * 64 + lane / 4 * 8);
    }
  }
};

/// A warp's left operands.
struct Queries {
  uint4 units[OCTETS][CHUNKS];

  DEVICE Queries(const T* q, int heads) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int o = 0; o < OCTETS; ++o) {
      const int mine = o * 8 + lane / 4;
#pragma unroll
      for (int j = 0; j < CHUNKS; ++j) units[o][j] = mine < heads ? load_unit(q + mine * DIM, j * 32 + lane % 4 * 8) : uint4{};
    }
  }
};

/// scores[16 heads, 2 · 8 keys] = queries · keysᵀ.
DEVICE void score(float (&scores)[2][4], const Queries& queries, const Ring& ring, int stage) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int e = 0; e < 4; ++e) scores[half][e] = 0;
#pragma unroll
    for (int j = 0; j < CHUNKS; ++j) {
      const uint4 q = queries.units[0][j], k = ring.at(stage, half * CHUNKS + j);
      const uint4 other = OCTETS == 2 ? queries.units[OCTETS - 1][j] : uint4{};
      const unsigned first[4] = {q.x, other.x, q.y, other.y}, second[4] = {q.z, other.z, q.w, other.w};
      multiply(scores[half], first, k.x, k.y);
      multiply(scores[half], second, k.z, k.w);
    }
  }
}

/// Where the warps of a block put together what they found, always in the same order.
struct Meeting {
  float tops[WARPS][OCTETS * 8], totals[WARPS][OCTETS * 8];
  float out[WARPS > 1 ? WARPS / 2 : 1][WARPS > 1 ? OCTETS * STRIPS * 16 : 1][32];
  float found[OCTETS * 8][PITCH];  // what is joined without a second kernel

  /// Of all warps; afterwards the first one's `running` has the sums of all.
  DEVICE void join(Running& running, float (&tops_of_all)[OCTETS], float (&totals_of_all)[OCTETS]) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int o = 0; o < OCTETS; ++o) {
      float total = running.total[o];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      tops_of_all[o] = running.top[o];
      totals_of_all[o] = total;
      if (WARPS > 1 && lane % 4 == 0) tops[warp][o * 8 + lane / 4] = running.top[o], totals[warp][o * 8 + lane / 4] = total;
    }
    if (WARPS == 1) return;
    __syncthreads();
#pragma unroll
    for (int o = 0; o < OCTETS; ++o) {
      const int head = o * 8 + lane / 4;
      totals_of_all[o] = 0;
#pragma unroll
      for (int w = 0; w < WARPS; ++w) tops_of_all[o] = fmaxf(tops_of_all[o], tops[w][head]);
#pragma unroll
      for (int w = 0; w < WARPS; ++w) totals_of_all[o] += totals[w][head] * factor(tops[w][head], tops_of_all[o]);
      running.scale(o, factor(running.top[o], tops_of_all[o]));
    }
#pragma unroll
    for (int half = WARPS / 2; half > 0; half /= 2) {
      if (warp >= half && warp < 2 * half) running.visit([&](int i, float& one) { out[warp - half][i][lane] = one; });
      __syncthreads();
      if (warp < half) running.visit([&](int i, float& one) { one += out[warp][i][lane]; });
      __syncthreads();
    }
  }
};

/// Four outputs of a head from its parts, in their order: part -> maximum and sum, part -> sums of those four.
template <class Sums, class Outputs>
DEVICE void join_parts(int count, const Sums& sums_of, const Outputs& outputs_of, T* to) {
  float top = __int_as_float(0xff800000), total = 0;
  for (int part = 0; part < count; ++part) top = fmaxf(top, sums_of(part).x);
  float4 out = {};
#pragma unroll 4
  for (int part = 0; part < count; ++part) {
    const float2 sums = sums_of(part);
    const float4 four = outputs_of(part);
    const float scale = factor(sums.x, top);
    total += sums.y * scale;
    out.x += four.x * scale, out.y += four.y * scale, out.z += four.z * scale, out.w += four.w * scale;
  }
  const float inverse = 1.0f / total;
  *(uint2*)to = make_uint2(pack(out.x * inverse, out.y * inverse), pack(out.z * inverse, out.w * inverse));
}
/// Of `heads`, from what this block found, or each of the cluster.
DEVICE void join_found(const float (*found)[PITCH], int heads, T* y) {
  if (CLUSTER) wait_for_cluster();
  else __syncthreads();
  for (int i = blockIdx.y * WARPS * 32 + threadIdx.x; i < heads * FOURS; i += PARTS * WARPS * 32) {
    const unsigned row = (unsigned)__cvta_generic_to_shared(found[i / FOURS]);
    const auto at = [&](int part, int element) {
      return CLUSTER ? load_remote(at_rank(row + element * 4, part)) : *(const float4*)&found[i / FOURS][element];
    };
    const auto sums_of = [&](int part) {
      const float4 sums = at(part, DIM);
      return make_float2(sums.x, sums.y);
    };
    join_parts(PARTS, sums_of, [&](int part) { return at(part, i % FOURS * 4); }, y + i * 4);
  }
  if (CLUSTER) meet_cluster();  // nobody leaves what others read
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    decode(const T* __restrict__ q, const T* __restrict__ k_pool, const T* __restrict__ v_pool, const long long* __restrict__ table,
           const long long* __restrict__ last, T* __restrict__ y, float* __restrict__ parts, float2* __restrict__ sums, int pages,
           float scale_log2) {
  extern __shared__ uint4 shared[];  // the warps' buffers, and afterwards where they meet
  const Ring ring{(uint4(*)[2 * CHUNKS + 4 * STRIPS][32])shared + threadIdx.x / 32 * STAGES};
  Meeting& meeting = *(Meeting*)shared;
  static_assert(sizeof(Meeting) <= sizeof(*ring.units) * WARPS * STAGES);
  const int lane = threadIdx.x % 32;
  const int head = blockIdx.x % KEY_HEADS, tile = blockIdx.x / KEY_HEADS % TILES, sequence = blockIdx.x / (KEY_HEADS * TILES);
  const int length = length_of(last[sequence]);
  const int begin = blockIdx.y * PART, end = min(begin + PART, length);
  if (!CLUSTER && begin >= end) return;
  const int first_head = head * GROUP + tile * OCTETS * 8, heads = min(GROUP - tile * OCTETS * 8, OCTETS * 8);
  const long long first_row = (long long)sequence * HEADS + first_head;

  const Pages places{table + (long long)sequence * TABLE, head, pages};
  int at = begin + (int)threadIdx.x / 32 * 16, next = at, row = places.row_of(at, length);
  const auto fetch_next = [&](int stage) {
    if (next < end) places.fetch(ring, stage, k_pool, v_pool, row);
    commit_copies();
    row = places.row_of(next += WARPS * 16, length);
  };
#pragma unroll
  for (int stage = 0; stage + 1 < STAGES; ++stage) fetch_next(stage);
  const Queries queries(q + first_row * DIM, heads);
  Running running;
  for (int stage = 0; at < end; at += WARPS * 16) {
    wait_copies<STAGES - 2>();
    fetch_next(stage == 0 ? STAGES - 1 : stage - 1);
    float scores[2][4];
    score(scores, queries, ring, stage);
    unsigned weights[OCTETS][2];
    running.weigh(scores, scale_log2, end - at, weights);
    running.add(weights, ring, stage);
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
  wait_copies<0>();
  __syncthreads();
  float tops[OCTETS], totals[OCTETS];
  meeting.join(running, tops, totals);
  if (threadIdx.x < 32) {
#pragma unroll
    for (int o = 0; o < OCTETS; ++o) {
      const int mine = o * 8 + lane / 4;
      if (lane % 4 == 0 && mine < heads) {
        if (HERE) *(float4*)&meeting.found[mine][DIM] = make_float4(tops[o], totals[o], 0, 0);
        else sums[(first_row + mine) * PARTS + blockIdx.y] = make_float2(tops[o], totals[o]);
      }
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const int which = o * 8 + lane % 4 * 2 + side;
#pragma unroll
        for (int s = 0; s < STRIPS; ++s) {
          const int element = s * 64 + lane / 4 * 8;
          float eight[8];
#pragma unroll
          for (int d = 0; d < 8; ++d) eight[d] = running.out[o][s * 4 + d / 2][d % 2 * 2 + side];
          if (which >= heads || element >= DIM) continue;
          float4* to = (float4*)(HERE ? &meeting.found[which][element] : parts + ((first_row + which) * PARTS + blockIdx.y) * DIM + element);
          to[0] = make_float4(eight[0], eight[1], eight[2], eight[3]);
          to[1] = make_float4(eight[4], eight[5], eight[6], eight[7]);
        }
      }
    }
  }
  if (HERE) join_found(meeting.found, heads, y + first_row * DIM);
}

/// A thread for four outputs of a head.
extern "C" __global__ void __launch_bounds__(128)
    combine(const long long* __restrict__ last, const float* __restrict__ parts, const float2* __restrict__ sums, T* __restrict__ y, long long rows) {
  const long long row = (blockIdx.x * 128ll + threadIdx.x) / FOURS;
  const int element = (blockIdx.x * 128ll + threadIdx.x) % FOURS * 4;
  if (row >= rows) return;
  const int count = (length_of(last[row / HEADS]) + PART - 1) / PART;
  const auto outputs_of = [&](int part) { return *(const float4*)(parts + (row * PARTS + part) * DIM + element); };
  join_parts(count, [&](int part) { return sums[row * PARTS + part]; }, outputs_of, y + row * DIM + element);
}
