// The results of a convolution and the taps that reach them: inner · in = stride · out + dilation ·
// tap + shift along each axis. Results whose taps are equal modulo `inner` are a phase; each phase
// is a product of its own. The grid has a layer of blocks for each phase of each group.
DEVICE constexpr int common_divisor(int a, int b) { return b == 0 ? a : common_divisor(b, a % b); }

/// The taps of a phase along an axis: tap, tap + STEP, …, of which the first reads element `first`
/// for the phase's first result.
template <int TAPS, int INNER, int DILATION, int SHIFT>
struct Line {
  static constexpr int STEP = INNER / common_divisor(INNER, DILATION);
  // elements from one of these taps to the next
  static constexpr int MOVE = DILATION * STEP / INNER;
  int phase, tap, count, first;
  DEVICE explicit Line(int phase) : phase(phase), tap(0) {
    while (tap < TAPS && (phase + DILATION * tap + SHIFT) % INNER != 0) ++tap;
    count = tap < TAPS ? (TAPS - 1 - tap) / STEP + 1 : 0;
    first = (phase + DILATION * tap + SHIFT) / INNER;
  }
};
typedef Line<TAPS_D, INNER_D, DILATION_D, SHIFT_D> LineD;
typedef Line<TAPS_H, INNER_H, DILATION_H, SHIFT_H> LineH;
typedef Line<TAPS_W, INNER_W, DILATION_W, SHIFT_W> LineW;
constexpr int PHASES = INNER_D * INNER_H * INNER_W;
DEVICE int group() { return blockIdx.z / PHASES; }
DEVICE int phase_d() { return blockIdx.z / (INNER_H * INNER_W) % INNER_D; }
DEVICE int phase_h() { return blockIdx.z / INNER_W % INNER_H; }
DEVICE int phase_w() { return blockIdx.z % INNER_W; }

// Results of a phase along each axis, of an image, and that with what fills its last unit up.
constexpr int LONG_D = (OUT_D + INNER_D - 1) / INNER_D, LONG_H = (OUT_H + INNER_H - 1) / INNER_H,
              LONG_W = (OUT_W + INNER_W - 1) / INNER_W;
constexpr int PIXELS = LONG_D * LONG_H * LONG_W;
constexpr int ROUNDED = PIXELS_FIRST || Y_RUNS ? PIXELS : (PIXELS + 7) / 8 * 8;

struct Pixel {
  int image, d, h, w;
  bool exists;
};
DEVICE Pixel pixel_at(unsigned number, unsigned numbers) {
  const unsigned rest = number % ROUNDED;
  return {(int)(number / ROUNDED), (int)(rest / (LONG_H * LONG_W)), (int)(rest / LONG_W % LONG_H),
          (int)(rest % LONG_W), number < numbers && rest < PIXELS};
}
/// Positions beyond an image's pixels count as one of them.
DEVICE long long pixel_number(long long position) {
  if (PHASES == 1) return position / ROUNDED * PIXELS + min((int)(position % ROUNDED), PIXELS - 1);
  const Pixel pixel = pixel_at((unsigned)position, ~0u);
  const int d = min(pixel.d * INNER_D + phase_d(), OUT_D - 1),
            h = min(pixel.h * INNER_H + phase_h(), OUT_H - 1),
            w = min(pixel.w * INNER_W + phase_w(), OUT_W - 1);
  return ((pixel.image * (long long)OUT_D + d) * OUT_H + h) * OUT_W + w;
}
/// Element of y, or -1.
DEVICE long long position(const Pixel& pixel, int filter) {
  const int d = pixel.d * INNER_D + phase_d(), h = pixel.h * INNER_H + phase_h(),
            w = pixel.w * INNER_W + phase_w();
  if (!pixel.exists || filter >= FILTERS || d >= OUT_D || h >= OUT_H || w >= OUT_W) return -1;
  return (long long)pixel.image * Y_IMAGE + (long long)group() * Y_GROUP +
         (long long)filter * Y_FILTER + d * Y_D + h * Y_H + w * Y_W;
}
DEVICE long long position(long long row, long long column, long long m, long long n) {
  return PIXELS_FIRST ? position(pixel_at((unsigned)row, (unsigned)m), (int)column)
                      : position(pixel_at((unsigned)column, (unsigned)n), (int)row);
}

// The functions of result_index.cuh for convolutions.
template <class E, int COUNT>
DEVICE void put(E* y, long long row, long long column, long long m, long long n,
                Units<E, COUNT> unit) {
  // where eight are whole, all of them exist or none
  constexpr int STEP = Y_WHOLE || Y_STEP > COUNT ? COUNT : Y_STEP;
  const long long first = position(row, column, m, n);
  // side by side
  const int exist = first < 0 ? 0
                    : Y_RUNS  ? (int)(n - column)
                              : PIXELS - (int)((unsigned)column % ROUNDED);
  UNROLLED for (int e = 0; e < COUNT; e += STEP) {
    const long long at = e == 0      ? first
                         : !Y_DENSE  ? position(row, column + e, m, n)
                         : e < exist ? first + e
                                     : -1;
    if (at >= 0) *(Units<E, STEP>*)(y + at) = ((const Units<E, STEP>*)&unit)[e / STEP];
  }
}
/// Stores elements one by one, where pixels of a phase are apart: neighbouring lanes then write to
/// the same sectors.
constexpr bool SCATTERED = !PIXELS_FIRST && !Y_DENSE;
/// Elements of y, of which each segment of the depth has a share.
DEVICE long long share_elements(long long m, long long n) {
  return (PIXELS_FIRST ? m : n) / ROUNDED * Y_ELEMENTS;
}
