// Windows over the last axes of images; elements beyond an image change no result. A thread
// computes VEC neighbouring results in each of BELOW rows, from strips of the operand's rows:
// elements that windows share are read and converted once. WEIGHTED: the elements of a window are
// multiplied by the filter of their image's channel and added up. Columns of the operand below VEC
// windows:
constexpr int SPAN = (VEC - 1) * STRIDE_W + (SIZE_W - 1) * DILATION_W + 1;
// Rows of the operand below BELOW windows:
constexpr int SPAN_H = (BELOW - 1) * STRIDE_H + (SIZE_H - 1) * DILATION_H + 1;
// A strip begins with a whole piece.
constexpr int SHIFT = (PIECE - PAD_W % PIECE) % PIECE;
constexpr int PIECES = (SHIFT + SPAN + PIECE - 1) / PIECE;
constexpr bool EDGES = PAD_W > 0 || OUT_W % VEC != 0 ||
                       (OUT_W - 1) * STRIDE_W + (SIZE_W - 1) * DILATION_W >= IN_W;

/// True if row k below the windows belongs to the windows of row `o`; below: to any.
DEVICE constexpr bool below(int k, int o) {
  return k >= o * STRIDE_H && (k - o * STRIDE_H) % DILATION_H == 0 &&
         (k - o * STRIDE_H) / DILATION_H < SIZE_H;
}
DEVICE constexpr bool below_any(int k) {
  for (int o = 0; o < BELOW; ++o) {
    if (below(k, o)) return true;
  }
  return false;
}

/// Neighbouring elements of a row.
struct Strip {
  typedef typename Words<PIECE * sizeof(From)>::type Raw;
  union {
    Raw raw[PIECES];
    From element[PIECES * PIECE];
  };
  DEVICE Strip() {}

  /// Loads the strip that begins at column `start`, a multiple of PIECE.
  DEVICE void read(const From* row, int start) {
#pragma unroll
    for (int p = 0; p < PIECES; ++p) {
      const int at = start + p * PIECE;
      const int first = max(SHIFT - p * PIECE, 0), last = min(SHIFT + SPAN - p * PIECE, PIECE);
      if (last - first > 2 || PIECE <= 2) {
        if (!EDGES || (unsigned)at < IN_W) raw[p] = *(const Raw*)(row + at);
        continue;
      }
#pragma unroll
      for (int e = 0; e < PIECE; ++e) {  // most of a whole piece would not be used
        if (e >= first && e < last && (!EDGES || (unsigned)(at + e) < IN_W))
          element[p * PIECE + e] = row[at + e];
      }
    }
  }
  DEVICE Acc get(int i, int start) const {
    return !EDGES || (unsigned)(start + SHIFT + i) < IN_W ? (Acc)before(element[SHIFT + i])
                                                          : NEUTRAL;
  }
};

/// A row of a filter: adds its weights times VEC windows.
DEVICE void add_weighted(const Acc (&weights)[SIZE_W], const Acc (&element)[SPAN],
                         Acc (&total)[VEC]) {
#pragma unroll
  for (int u = 0; u < SIZE_W; ++u) {
#pragma unroll
    for (int lane = 0; lane < VEC; ++lane)
      total[lane] += weights[u] * element[lane * STRIDE_W + u * DILATION_W];
  }
}

/// Combines the windows that begin at these coordinates of one image into `total`.
DEVICE void pool(const From* __restrict__ image, const From* __restrict__ filter, int d0, int h0,
                 int w0, Acc (&total)[BELOW][VEC]) {
#pragma unroll
  for (int r = 0; r < SIZE_D; ++r) {
    const int d = d0 + r * DILATION_D;
    if ((unsigned)d >= IN_D) continue;
    Acc weights[SIZE_H][SIZE_W];
#pragma unroll
    for (int i = 0; WEIGHTED && i < SIZE_H * SIZE_W; ++i)
      weights[i / SIZE_W][i % SIZE_W] = (Acc)before(
          filter[r * FILTER_D + i / SIZE_W * FILTER_H + i % SIZE_W * FILTER_W]);
    Strip strips[SPAN_H];
#pragma unroll
    for (int k = 0; k < SPAN_H; ++k) {
      if (below_any(k) && (unsigned)(h0 + k) < IN_H)
        strips[k].read(image + (d * IN_H + h0 + k) * IN_W, w0 - SHIFT);
    }
#pragma unroll
    for (int k = 0; k < SPAN_H; ++k) {
      if (!below_any(k) || (unsigned)(h0 + k) >= IN_H) continue;
      Acc element[SPAN];
#pragma unroll
      for (int i = 0; i < SPAN; ++i) element[i] = strips[k].get(i, w0 - SHIFT);
#pragma unroll
      for (int o = 0; WEIGHTED && o < BELOW; ++o) {
        if (below(k, o)) add_weighted(weights[(k - o * STRIDE_H) / DILATION_H], element, total[o]);
      }
#pragma unroll
      for (int lane = 0; !WEIGHTED && lane < VEC; ++lane) {
        Acc across = element[lane * STRIDE_W];
#pragma unroll
        for (int u = 1; u < SIZE_W; ++u)
          across = Op::of(across, element[lane * STRIDE_W + u * DILATION_W]);
#pragma unroll
        for (int o = 0; o < BELOW; ++o) {
          if (below(k, o)) total[o][lane] = Op::of(total[o][lane], across);
        }
      }
    }
  }
}

/// The results of thread number `thread`, if there are so many threads.
DEVICE void pool_all(const From* __restrict__ x, const From* __restrict__ filters,
                     To* __restrict__ y, unsigned images, unsigned thread) {
  constexpr unsigned GROUPS_W = (OUT_W + VEC - 1) / VEC, GROUPS_H = (OUT_H + BELOW - 1) / BELOW;
  const unsigned w = thread % GROUPS_W * VEC, h = thread / GROUPS_W % GROUPS_H * BELOW,
                 d = thread / (GROUPS_W * GROUPS_H) % OUT_D;
  const unsigned image = thread / (GROUPS_W * GROUPS_H * OUT_D);
  if (image >= images) return;
  Acc total[BELOW][VEC];
#pragma unroll
  for (int i = 0; i < BELOW * VEC; ++i) total[i / VEC][i % VEC] = NEUTRAL;
  pool(x + (long long)image * (IN_D * IN_H * IN_W), filters + image % CHANNELS * FILTER,
       (int)d * STRIDE_D - PAD_D, (int)h * STRIDE_H - PAD_H, (int)w * STRIDE_W - PAD_W, total);
  To* to = y + (long long)image * (OUT_D * OUT_H * OUT_W) + (d * OUT_H + h) * OUT_W + w;
#pragma unroll
  for (int o = 0; o < BELOW; ++o) {
    if (h + o >= OUT_H) return;
    Vector<To> v;
#pragma unroll
    for (int lane = 0; lane < VEC; ++lane) v.element[lane] = after(total[o][lane] / (Acc)COUNT);
    if (OUT_W % VEC == 0) write(to + o * OUT_W, v);
#pragma unroll
    for (int lane = 0; OUT_W % VEC != 0 && lane < VEC; ++lane) {
      if (w + lane < OUT_W) to[o * OUT_W + lane] = v.element[lane];
    }
  }
}
