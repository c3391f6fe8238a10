// Shared by the attention kernels on tensor cores. One block owns TILE_Q queries of one head; keys
// and values stream by in tiles of TILE_K, through STAGES buffers. The softmax is online: scores
// never leave registers, and sums are rescaled when the maximum grows.
constexpr bool ALIGNED = DIM % 8 == 0;      // rows start at multiples of 16 bytes
constexpr int UNITS = (DIM + 15) / 16 * 2;  // per row; the last one may be padding

/// The byte offset of a unit in a tile of ROWS rows, which is cut into panels of PANEL units.
template <int ROWS>
DEVICE int tile_offset(int row, int unit) {
  return unit / PANEL * (ROWS * pitch<PANEL>() * 16) + swizzled<PANEL>(row, unit % PANEL);
}
template <int ROWS>
DEVICE constexpr int tile_bytes() {
  return (UNITS + PANEL - 1) / PANEL * ROWS * pitch<PANEL>() * 16;
}

/// Rows first … first + ROWS - 1 of a head into shared memory; zeros beyond the sequence.
template <int ROWS>
DEVICE void fetch(unsigned char* shared, unsigned at, const T* head, int first, int sequence) {
  UNROLLED for (int i = 0; i < (ROWS * UNITS + THREADS - 1) / THREADS; ++i) {
    // Where the block covers whole rows, a thread keeps its unit and walks down.
    const int index = threadIdx.x + i * THREADS;
    const int row = THREADS % UNITS == 0 ? threadIdx.x / UNITS + i * (THREADS / UNITS)
                                         : index / UNITS;
    const int unit = THREADS % UNITS == 0 ? threadIdx.x % UNITS : index % UNITS;
    if (ROWS * UNITS % THREADS != 0 && index >= ROWS * UNITS) break;
    const bool valid = first + row < sequence && unit * 8 < DIM;
    const T* from = head + (long long)(first + row) * DIM + unit * 8;
    const int offset = at + tile_offset<ROWS>(row, unit);
    if (ALIGNED)
      copy_async<16>(shared_address(shared) + offset, from, valid);
    else
      gather(shared + offset, from, valid ? DIM - unit * 8 : 0);
  }
}

/// The softmax state of sixteen queries of a warp, of which a lane holds two: the running maximum,
/// and the lane's part of the sum.
struct Running {
  float top[2] = {MASKED, MASKED};
  float total[2] = {0, 0};

  /// Masks keys that a row does not see.
  template <int FRAGMENTS>
  static DEVICE void mask(float (&scores)[FRAGMENTS][4], int first_key, int first_row,
                          const Queries& queries) {
    const int lane = threadIdx.x % 32;
    int first[2], last[2];  // key that a row sees, from this lane's first one on
    UNROLLED for (int half = 0; half < 2; ++half) {
      const int row = first_row + lane / 4 + half * 8, here = first_key + lane % 4 * 2;
      first[half] = queries.first_key(row) - here;
      last[half] = queries.last_key(row) - here;
    }
    UNROLLED for (int j = 0; j < FRAGMENTS; ++j) {
      UNROLLED for (int e = 0; e < 4; ++e) {
        if (j * 8 + e % 2 > last[e / 2] || (WINDOW > 0 && j * 8 + e % 2 < first[e / 2]))
          scores[j][e] = MASKED;
      }
    }
  }
  /// Turns scores into weights, relative to a maximum that may be SLACK powers of two too low, so
  /// that it seldom changes. Gradients (STATISTICS) are differences of nearly equal numbers where a
  /// single key has nearly all weight; there its weight is exactly one, which packing does not
  /// round. keep[half] is the factor for all earlier weights of that row.
  template <int FRAGMENTS>
  DEVICE void weigh(float (&scores)[FRAGMENTS][4], float scale_log2, float (&keep)[2]) {
    constexpr float SLACK = STATISTICS ? 0 : 8;
    constexpr bool EMPTY = WINDOW > 0 || ADDS;  // a row may see no key of the first tiles
    float peaks[2][2] = {{top[0], top[0]}, {top[1], top[1]}};
    UNROLLED for (int j = 0; j < FRAGMENTS; ++j) {
      UNROLLED for (int e = 0; e < 4; ++e)
          peaks[e / 2][e % 2] = stronger(peaks[e / 2][e % 2], scores[j][e]);
    }
    float shift[2], steep[2];
    UNROLLED for (int half = 0; half < 2; ++half) {
      float peak = stronger(peaks[half][0], peaks[half][1]);
      peak = stronger(peak, __shfl_xor_sync(0xffffffffu, peak, 1));
      peak = stronger(peak, __shfl_xor_sync(0xffffffffu, peak, 2));
      steep[half] = to_exponents(peak, scale_log2);
      const bool grown = (peak - top[half]) * steep[half] > SLACK;
      // Subtracting the rounded shifts gives exactly the factor that earlier weights lack.
      shift[half] = __fmul_rn(grown ? peak : top[half], steep[half]);
      keep[half] = grown ? power_of_two(__fmul_rn(top[half], steep[half]) - shift[half]) : 1.0f;
      if (grown) top[half] = peak;
      if (EMPTY && top[half] == MASKED) shift[half] = 0;
    }
    float sums[2][2] = {};  // short chains in place of a long one
    UNROLLED for (int j = 0; j < FRAGMENTS; ++j) {
      UNROLLED for (int e = 0; e < 4; ++e) {
        const float score = scores[j][e];
        scores[j][e] = power_of_two(STATISTICS || FAR
                                        ? __fmul_rn(score, steep[e / 2]) - shift[e / 2]
                                        : fmaf(score, steep[e / 2], -shift[e / 2]));
        sums[e / 2][e % 2] += scores[j][e];
      }
    }
    UNROLLED for (int half = 0; half < 2; ++half)
        total[half] = total[half] * keep[half] + (sums[half][0] + sums[half][1]);
  }
  /// An endless loop that never runs, since no sum of powers is negative; but it needs the sums, so
  /// that the code behind it cannot begin before them. Without it the assembler moves the
  /// computation of the weights behind the wait for the products that should hide it.
  DEVICE void hold() {
    while (__any_sync(0xffffffffu, fminf(total[0], total[1]) < 0))
      asm volatile("abs.f32 %0, %0;\nabs.f32 %1, %1;" : "+f"(total[0]), "+f"(total[1]));
  }
  /// 1 / the sum over all keys, or 0 for a row without keys.
  DEVICE float inverse(int half) const {
    float sum = total[half];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    return ADDS && sum == 0 ? 0.0f : 1.0f / sum;  // a mask may leave no key
  }
};

/// Multiplies a lane's two rows, if any lane of the warp needs it.
template <int FRAGMENTS>
DEVICE void rescale(float (&out)[FRAGMENTS][4], const float (&keep)[2]) {
  UNROLLED for (int half = 0; half < 2; ++half) {
    if (!__any_sync(0xffffffffu, keep[half] != 1.0f)) continue;
    UNROLLED for (int d = 0; d < FRAGMENTS; ++d) {
      out[d][half * 2] *= keep[half];
      out[d][half * 2 + 1] *= keep[half];
    }
  }
}

/// Two fragments of weights side by side have the layout of one left operand of sixteen keys.
DEVICE void pack_weights(unsigned (&a)[4], const float (&first)[4], const float (&second)[4]) {
  UNROLLED for (int half = 0; half < 2; ++half) {
    a[half] = pack(first[half * 2], first[half * 2 + 1]);
    a[half + 2] = pack(second[half * 2], second[half * 2 + 1]);
  }
}

/// Transposes a 4 × 4 matrix of words: each of four neighbouring lanes holds a column before, and a
/// row after.
DEVICE void transpose_four(unsigned (&words)[4]) {
  UNROLLED for (int bit = 1; bit < 4; bit *= 2) {
    const bool upper = threadIdx.x & bit;
    UNROLLED for (int i = 0; i < 4; ++i) {
      if (i & bit) continue;
      const unsigned other = __shfl_xor_sync(0xffffffffu, upper ? words[i] : words[i | bit], bit);
      (upper ? words[i] : words[i | bit]) = other;
    }
  }
}

/// The elements of a mask for sixteen rows and eight keys per fragment, loaded ahead: each of four
/// neighbouring lanes loads every fourth unit of its rows, and needs a pair of each.
template <int FRAGMENTS>
struct Added {
  uint4 units[(FRAGMENTS + 3) / 4][2];

  DEVICE void load(const Task& task, int head, int first_key, int first_row) {
    const int lane = threadIdx.x % 32, keys = task.keys();
    UNROLLED for (int half = 0; half < 2; ++half) {
      const T* from = task.mask_of<T>(head, first_row + lane / 4 + half * 8);
      UNROLLED for (int group = 0; group < (FRAGMENTS + 3) / 4; ++group) {
        const int key = first_key + group * 32 + lane % 4 * 8;
        if (WHOLE_UNITS)
          units[group][half] = key < keys ? __ldg((const uint4*)(from + key)) : uint4{};
        else
          gather((unsigned char*)&units[group][half], from + key, keys - key);
      }
    }
  }
  DEVICE void add_to(float (&scores)[FRAGMENTS][4], float scale_log2) const {
    UNROLLED for (int half = 0; half < 2; ++half) {
      UNROLLED for (int j = 0; j < FRAGMENTS; j += 4) {
        const uint4 unit = units[j / 4][half];
        unsigned words[4] = {unit.x, unit.y, unit.z, unit.w};
        transpose_four(words);
        UNROLLED for (int i = 0; i < 8 && j + i / 2 < FRAGMENTS; ++i) {
          float& score = scores[j + i / 2][half * 2 + i % 2];
          score = with_mask(score, scale_log2, (float)((const T*)words)[i]);
        }
      }
    }
  }
};

/// Stores sixteen rows of a warp times a factor each, straight from registers; four lanes write 64
/// neighbouring bytes. The lane's rows are `row` and `row` + 8, of a head of `rows` rows.
template <int FRAGMENTS>
DEVICE void write_rows(const float (&out)[FRAGMENTS][4], const float (&factors)[2], int row,
                       T* head, int rows) {
  UNROLLED for (int half = 0; half < 2; ++half) {
    T* to = head + (long long)(row + half * 8) * DIM;
    UNROLLED for (int d = 0; d < FRAGMENTS; d += 4) {
      unsigned words[4] = {};
      UNROLLED for (int i = 0; i < 4 && d + i < FRAGMENTS; ++i) words[i] = pack(
          out[d + i][half * 2] * factors[half], out[d + i][half * 2 + 1] * factors[half]);
      transpose_four(words);
      const int unit = d + threadIdx.x % 4;
      if (row + half * 8 >= rows) continue;
      if (ALIGNED && unit * 8 < DIM) *(uint4*)(to + unit * 8) = *(const uint4*)words;
      for (int e = 0; !ALIGNED && e < min(8, DIM - unit * 8); ++e)
        to[unit * 8 + e] = ((const T*)words)[e];
    }
  }
}
