// Mean and variance of rows, and values per column: for layernorm and its gradient.

/// One value per column, the same for every row: read through the caches, or kept in registers.
struct Parameters {
  const T* values[PARAMETERS];
  Elements held[PARAMETERS][KEEP ? CHUNKS : 1];

  DEVICE explicit Parameters(const T* const (&from)[PARAMETERS]) {
    const Lane lane(0, Team());
    UNROLLED for (int which = 0; which < PARAMETERS; ++which) {
      values[which] = from[which];
      if (KEEP) lane.each<1024>([&](int c) { held[which][KEEP ? c : 0] = read(lane, c, which); });
    }
  }
  /// The parameters of vector c of a row.
  DEVICE Elements get(const Lane& lane, int c, int which = 0) const {
    return KEEP ? held[which][KEEP ? c : 0] : read(lane, c, which);
  }

 private:
  DEVICE Elements read(const Lane& lane, int c, int which) const {
    const T* from = values[which] + lane.at(c) - lane.first;
    Elements v;
    if (!PEELED) {
      v.raw[0] = *(const Elements::Raw::type*)from;
      return v;
    }
    UNROLLED for (int e = 0; e < VEC; ++e) {
      if (lane.has(c, e))
        v.element[e] = from[e];
      else
        store(v.element[e], 0.0f);
    }
    return v;
  }
};

/// Moments of some elements of a row: their count, their mean, and the sum of their squared
/// deviations from the mean.
struct Moments {
  float count = 0;
  float mean = 0;
  float squares = 0;

  /// The sum of squared deviations from another point (Chan, Golub and LeVeque).
  DEVICE float squares_about(float other) const {
    return squares + count * (mean - other) * (mean - other);
  }
  template <class Parts>
  static DEVICE Moments of(const Parts& parts, int count) {
    const float mean = parts.template combine<Sum>([](const Moments& p) {
      return p.count * p.mean;
    }) / max(1, count);
    return {(float)count, mean,
            parts.template combine<Sum>([&](const Moments& p) { return p.squares_about(mean); })};
  }
};

/// A row's mean and 1 / standard deviation.
struct Norm {
  float mean;
  float scale;
};

/// Some of a thread's elements of a row, seen from the mean of their first vector, so that one pass
/// is enough: the mean of k of n elements is off by no more than sqrt(squares / k), and what
/// cancels in the squares no more than n / k <= SPAN times what is left.
struct Deviations {
  float pivot;
  float count = 0;
  float sum = 0;
  float squares = 0;

  DEVICE Deviations(const Elements& first, const Lane& lane, int c) {
    float total = 0, n = 0;
    UNROLLED for (int e = 0; e < VEC; ++e) {
      const bool has = lane.has(c, e);
      total += has ? first[e] : 0.0f;
      n += has ? 1.0f : 0.0f;
    }
    pivot = n == 0 ? 0.0f : __fdividef(total, n);
  }
  /// Adds one element if it belongs to the row; returns its deviation, or zero.
  DEVICE float add(float v, bool has) {
    const float deviation = has ? v - pivot : 0.0f;
    sum += deviation;
    squares += deviation * deviation;
    count += has ? 1.0f : 0.0f;
    return deviation;
  }
  /// The distance from the pivot to the mean.
  DEVICE float offset() const { return count == 0 ? 0.0f : __fdividef(sum, count); }
  DEVICE Moments moments() const {
    return {count, pivot + offset(), fmaxf(0.0f, squares - sum * offset())};
  }
};

DEVICE Norm norm_of(const Moments& m, float eps) {
  return {m.mean, rsqrtf(m.squares * (1.0f / COLS) + eps)};
}
