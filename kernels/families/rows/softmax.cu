constexpr float LOG2E = 1.4426950408889634f;

/// exp(v - top) as 2^(v * factor + offset), one fused multiply-add. The offset is rounded, which
/// multiplies all weights of the row by the same factor, 2^32 at most; their sum takes it out. Tops
/// beyond that lie so far apart from other floats that only their equals have a weight; there
/// nothing must be rounded (rows of nothing but a mask).
struct Shift {
  float factor, offset;

  DEVICE explicit Shift(float top) {
    factor = fabsf(top) > 5e8f ? 1.0f : LOG2E;
    // never fused: the same everywhere
    offset = top == MINUS_INFINITY ? 0.0f : __fmul_rn(-top, factor);
  }
  DEVICE float weight(float v) const { return power_of_two(fmaf(v, factor, offset)); }
  /// The factor that turns weights relative to `from` into weights relative to this maximum.
  DEVICE float since(float from) const {
    return from == MINUS_INFINITY ? 0.0f : power_of_two(offset - Shift(from).offset);
  }
};

/// The largest of some elements of a row, and the sum of their weights over it.
struct Peak {
  float top = MINUS_INFINITY;
  float total = 0;

  template <class Parts>
  static DEVICE Peak of(const Parts& parts, int) {
    const float top = parts.template combine<Max>([](const Peak& p) { return p.top; });
    const Shift over(top);
    return {top, parts.template combine<Sum>(
                     [&](const Peak& p) { return p.total * over.since(p.top); })};
  }
};

/// The largest of some elements, NaN if there is one. Elements of 16 bits are compared in pairs.
struct Top {
#if defined(__CUDA_FP16_TYPES_EXIST__) && __CUDA_ARCH__ >= 800
  static constexpr bool PAIRS = VEC > 1;
  static DEVICE unsigned larger(unsigned a, unsigned b, __half) {
    asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
  }
  static DEVICE unsigned larger(unsigned a, unsigned b, __nv_bfloat16) {
    asm("max.NaN.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
    return a;
  }
#else
  static constexpr bool PAIRS = false;
  template <class U>
  static DEVICE unsigned larger(unsigned a, unsigned, U) {
    return a;
  }
#endif
  Elements pairs;
  float top = MINUS_INFINITY;

  DEVICE Top() { UNROLLED for (int e = 0; e < VEC; ++e) store(pairs.element[e], MINUS_INFINITY); }
  DEVICE void add(const Elements& v) {
    if (PAIRS) {
      UNROLLED for (int w = 0; w < sizeof(v.word) / sizeof(Elements::Word); ++w)
          pairs.word[w] = larger(pairs.word[w], v.word[w], T());
    } else {
      UNROLLED for (int e = 0; e < VEC; ++e) top = Max::of(top, v[e]);
    }
  }
  DEVICE float value() const {
    float all = top;
    UNROLLED for (int e = 0; PAIRS && e < VEC; ++e) all = Max::of(all, pairs[e]);
    return all;
  }
};

struct Softmax {
  typedef Peak Part;
  T* y;

  DEVICE explicit Softmax(T* y) : y(y) {}
  DEVICE Peak measure(const Lane& lane, const Kept& kept, Team& team) {
    if (STORAGE != RELOAD) return measure_kept(lane, kept, team);
    const Peak mine[1] = {scan(lane, kept)};
    return whole(mine, COLS, OverBlock{team.slot});
  }
  DEVICE void write(const Lane& lane, const Kept& kept, const Peak& peak) {
    const float scale = 1.0f / peak.total;
    const Shift over(peak.top);
    lane.each<WRITE_UNROLL>([&](int c) {
      const Elements v = kept.get(lane, c);
      float out[VEC];
      UNROLLED for (int e = 0; e < VEC; ++e) out[e] = over.weight(v[e]) * scale;
      put(y, lane, c, out);
    });
  }

 private:
  DEVICE Peak measure_kept(const Lane& lane, const Kept& kept, Team& team) {
    Top top;
    lane.each<PASS_UNROLL>([&](int c) { top.add(kept.get(lane, c)); });
    Peak peak;
    peak.top = row_reduce<Max>(top.value(), team.slot);
    const Shift over(peak.top);
    lane.each<PASS_UNROLL, SPAN>([&](int first) {
      float total = 0;
      lane.each<PASS_UNROLL>(
          [&](int c) {
            const Elements v = kept.get(lane, c);
            float sum = 0;
            UNROLLED for (int e = 0; e < VEC; ++e) sum += over.weight(v[e]);
            total += sum;
          },
          first, min(first + SPAN, CHUNKS));
      peak.total = first == 0 ? total : peak.total + total;
    });
    peak.total = row_reduce<Sum>(peak.total, team.slot);
    return peak;
  }
  /// One pass over this thread's elements of a row that has to be read again (online softmax): when
  /// a larger element comes, the sum so far is scaled down.
  static DEVICE Peak scan(const Lane& lane, const Kept& kept) {
    Peak all;
    lane.each<1, SPAN>([&](int first) {
      Peak peak;
      lane.each<UNROLL>(
          [&](int c) {
            const Elements v = kept.get(lane, c);
            Top largest;
            largest.add(v);
            const float top = Max::of(peak.top, largest.value());
            const Shift over(top);
            float sum = 0;
            UNROLLED for (int e = 0; e < VEC; ++e) sum += over.weight(v[e]);
            peak = {top, peak.total * over.since(peak.top) + sum};
          },
          first, min(first + SPAN, CHUNKS));
      all = first == 0 ? peak : joined(all, peak, COLS);
    });
    return all;
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    kernel(const T* __restrict__ x, T* __restrict__ y, long long rows SPLIT_PARAMETERS) {
  const Matrices in = {x};
  Pass<Softmax> pass(in, rows);
  Softmax softmax(y);
  pass.run(softmax SPLIT_ARGUMENTS);
}
