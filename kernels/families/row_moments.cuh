// Mean and variance of rows, and values per column: for layernorm and its gradient.

/// One value per column, the same for every row: read through the caches, or kept in registers.
struct Parameters {
  const T* values[PARAMETERS];
  Vector held[PARAMETERS][KEEP ? CHUNKS : 1];

  DEVICE void keep(const Team& team) {
    const Lane lane(0, team);
    UNROLLED for (int which = 0; which < PARAMETERS; ++which) {
#pragma unroll KEEP ? 1024 : 1
      for (int c = 0; c < CHUNKS; ++c) {
        if (KEEP && lane.has(c)) held[which][KEEP ? c : 0] = read(lane, c, which);
      }
    }
  }
  /// Those that belong to vector c of a row.
  DEVICE Vector get(const Lane& lane, int c, int which = 0) const {
    return KEEP ? held[which][KEEP ? c : 0] : read(lane, c, which);
  }

 private:
  DEVICE Vector read(const Lane& lane, int c, int which) const {
    const T* from = values[which] + lane.at(c) - lane.first;
    Vector v;
    if (!PEELED) {
      v.raw = *(const RawVector*)from;
      return v;
    }
    UNROLLED for (int e = 0; e < VEC; ++e) {
      if (lane.has(c, e)) v.element[e] = from[e];
      else from_float(v.element[e], 0.0f);
    }
    return v;
  }
};

/// What is known of some elements of a row: how many, their mean, the sum of their squared deviations from it.
struct Moments {
  float count = 0;
  float mean = 0;
  float squares = 0;

  /// Takes in `n` more elements (Chan, Golub and LeVeque).
  DEVICE void add(float n, float other_mean, float other_squares) {
    if (n == 0) return;
    count += n;
    const float share = __fdividef(n, count);
    const float delta = other_mean - mean;
    mean += delta * share;
    squares += other_squares + delta * delta * (count - n) * share;
  }
};

/// A row's mean and 1 / standard deviation.
struct Norm {
  float mean;
  float scale;
};

constexpr int SPAN = 16;  // vectors that are seen from the mean of their first one

/// Some of a thread's elements of a row, seen from the mean of their first vector, so that one pass is enough: the mean of k
/// of n elements is off by no more than sqrt(squares / k), and what cancels in the squares no more than n / k <= SPAN times
/// what is left.
struct Deviations {
  float pivot;
  float count = 0;
  float sum = 0;
  float squares = 0;

  DEVICE Deviations(const Vector& first, const Lane& lane, int c) {
    float total = 0, n = 0;
    UNROLLED for (int e = 0; e < VEC; ++e) {
      const bool has = lane.has(c, e);
      total += has ? first[e] : 0.0f;
      n += has ? 1.0f : 0.0f;
    }
    pivot = n == 0 ? 0.0f : __fdividef(total, n);
  }
  /// Takes in one element, if it is of the row; returns its deviation or zero.
  DEVICE float add(float v, bool has) {
    const float deviation = has ? v - pivot : 0.0f;
    sum += deviation;
    squares += deviation * deviation;
    count += has ? 1.0f : 0.0f;
    return deviation;
  }
  /// From the pivot to the mean.
  DEVICE float offset() const { return count == 0 ? 0.0f : __fdividef(sum, count); }
  DEVICE Moments moments() const { return {count, pivot + offset(), fmaxf(0.0f, squares - sum * offset())}; }
};

/// The row's moments from what the blocks that share it sent: counts, means, squares.
DEVICE Moments merge_moments(const float (*sent)[CLUSTER]) {
  Moments all;
  all.count = COLS;
  UNROLLED for (int rank = 0; rank < CLUSTER; ++rank) all.mean += sent[0][rank] * (1.0f / COLS) * sent[1][rank];
  UNROLLED for (int rank = 0; rank < CLUSTER; ++rank) {
    const float delta = sent[1][rank] - all.mean;
    all.squares += sent[2][rank] + sent[0][rank] * delta * delta;
  }
  return all;
}
DEVICE void pack_moments(const Moments& mine, float* values) {
  values[0] = mine.count;
  values[1] = mine.mean;
  values[2] = mine.squares;
}
DEVICE void join(Moments& all, const Moments& more) { all.add(more.count, more.mean, more.squares); }

/// The moments of the block's part, `count` elements, from its threads'.
DEVICE Moments in_block(const Moments& mine, int count, Team& team) {
  Moments all;
  all.count = count;
  all.mean = block_reduce<Sum>(mine.count * mine.mean, team) / max(1, count);
  const float delta = mine.mean - all.mean;
  all.squares = block_reduce<Sum>(mine.squares + mine.count * delta * delta, team);
  return all;
}

DEVICE Norm norm_of(const Moments& m, float eps) { return {m.mean, rsqrtf(m.squares * (1.0f / COLS) + eps)}; }

/// Elements of the row in part p, as Lane::count says for the block's own.
DEVICE int count_of_part(long long row, int p) {
  const int first = (PEELED ? (int)((row * COLS) & (VEC - 1)) : 0) - p * PART;
  return max(0, min(PART, COLS + first) - max(0, first));
}
