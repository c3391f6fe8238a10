// Implicit GEMM for convolutions on Hopper: y[filter, pixel] = Σ over taps t and channels c of
// w[filter, t, c] · x[pixel + t, c]. No matrix of gathered patches (im2col) is stored; every tap
// reads the same pixels in shared memory at another offset.
//
// A position is a pixel of the (padded) image in row-major order, numbered through all images. The
// zeros around an image make every tap a constant distance between positions. Example: 3 x 3 taps,
// rows of W = 16 + 2 positions. The results at positions p … p + 127 need x at
//
//     tap row 0:  p      … p + 127 + 2     taps (0,0) (0,1) (0,2) at offsets 0, 1, 2
//     tap row 1:  p + 18 … p + 145 + 2     taps (1,0) (1,1) (1,2)
//     tap row 2:  p + 36 … p + 163 + 2     taps (2,0) (2,1) (2,2)
//
// Such a range is a segment of rows (128 bytes of channels each). One thread copies a segment by
// tensor maps into a ring buffer (Segments), and the filters of its taps into another (Filters).
// Warpgroups multiply, for each tap, 64 filters x TILE_N positions: the right operand is the
// segment, beginning at the tap's offset. REACH = 2 puts taps of all rows into one longer segment.
//
// Variants, chosen by conv_implicit_gemm.cpp:
// - Arranged (not DIRECT): a first kernel writes x with its channels last and zeros around images.
// - DIRECT: x is read in its native layout by five-dimensional tensor maps, PANEL pixels of a row
// per copy; the copies fill in the zeros. Panels below each other share a segment; taps along a row
// and across it have segments of their own.
// - SHIFTED: where copies cannot begin at every tap along a row (rows need 16-byte alignment), each
// of SHIFTS taps has its own sums over the same pixels; they are added when stored, shifted by the
// tap's offset.
// - Stride > 1: space-to-depth. A position holds SPLIT pixels, one for each tap within a stride.
// Stride and dilation of an axis have no common divisor: taps SPLIT apart read the same pixel.
// - Transposed convolutions: results with equal remainders modulo the stride (sub-pixel phases)
// need the same taps; each phase has rows of filters of its own (ROW_PHASES).
// - MERGED and PAIR: few filters leave rows of the tensor core empty, so neighbouring pixels or
// rows become phases too.
//
// - FLOAT_PARTS = 3: float32 in two float16 parts (conv_arrange.cu). Tensor cores truncate what
// they add, so after PROMOTED segments their sums are added to others in registers.
//
// SETS = 2 sets of warpgroups alternate between tiles: one multiplies while the other stores.
constexpr int DEPTH = ROW_BYTES / 2;  // channels of a row of shared memory
constexpr int CHUNKS = (MERGED * C + DEPTH - 1) / DEPTH;
constexpr int STEPS = (MERGED * C < DEPTH ? MERGED * C + 15 : DEPTH) / 16;  // of 16 channels
constexpr int TAPS = TAPS_D * TAPS_H * TAPS_W;
constexpr bool SHIFTED = SHIFTS > 1;
constexpr int LINE = SHIFTED ? PADDED_W : PANEL;  // positions from one row to the next
// Distance between positions of a row that have a result.
constexpr int STEP_X = SHIFTED ? STRIDE_W : 1;

/// A segment: one pixel of each position of a range, and the taps that read it, which are STEP
/// apart along the last REACH axes.
struct Segment {
  static constexpr int STEP_W = SHIFTED || MERGED > 1 ? 1
                                : DIRECT              ? TAPS_W
                                                      : SPLIT_W,
                       FIRST_H = REACH == 2 ? SPLIT_H : TAPS_H, COUNT = TAPS_D * FIRST_H * STEP_W;
  static constexpr int LONGEST = (REACH == 2 ? (TAPS_H - PAIR) / SPLIT_H * DILATION_H * LINE : 0) +
                                 (SHIFTED ? 0 : (TAPS_W - 1) / STEP_W * DILATION_W);
  int d, h, w;  // the first tap
  DEVICE explicit Segment(int number)
      : d(number / (FIRST_H * STEP_W)), h(number / STEP_W % FIRST_H), w(number % STEP_W) {}
  DEVICE int across() const { return (TAPS_W - 1 - w) / STEP_W + 1; }
  DEVICE int count() const {
    return REACH == 2 ? ((TAPS_H - 1 - h) / SPLIT_H + 1) * across() : across();
  }
  DEVICE int pixel() const {
    return (d * DILATION_D % SPLIT_D * SPLIT_H + h * DILATION_H % SPLIT_H) * STEP_W +
           (MERGED > 1 ? w : w * DILATION_W % SPLIT_W);
  }
  DEVICE int start() const {
    return (d * DILATION_D / SPLIT_D * PADDED_H + h * DILATION_H / SPLIT_H) * PADDED_W +
           (MERGED > 1 ? 0 : w * DILATION_W / SPLIT_W);
  }
  DEVICE int tap(int i) const {
    return (d * TAPS_H + h + i / across() * SPLIT_H) * TAPS_W + w + i % across() * STEP_W;
  }
  DEVICE int distance(int i) const {
    return i / across() * DILATION_H * LINE + (SHIFTED ? 0 : i % across() * DILATION_W);
  }
};
constexpr int SEGMENTS = Segment::COUNT;
constexpr int TILE_M = GROUPS_M * 64, TILE_P = GROUPS_P * TILE_N;
constexpr int BOXES = DIRECT ? (TILE_P * PAIR + Segment::LONGEST) / PANEL
                             : (TILE_P + Segment::LONGEST + 255) / 256;
constexpr int BOX_ROWS = DIRECT ? PANEL
                                : ((TILE_P + Segment::LONGEST + BOXES - 1) / BOXES + 7) / 8 * 8;
constexpr int X_BYTES = (BOXES * BOX_ROWS * ROW_BYTES + 1023) / 1024 * 1024,
              TAP_BYTES = TILE_M * ROW_BYTES, W_BYTES = SHIFTS * TAP_BYTES;
constexpr int SET_THREADS = GROUPS_M * GROUPS_P * 128, CONSUMERS = SETS * SET_THREADS,
              FETCHERS = SHIFTED && CONSUMERS == 256 ? 128 : 32, THREADS = CONSUMERS + FETCHERS;
/// The layout of a warp's results in shared memory: [filter][position], or [position][filter] where
/// filters are neighbours in y.
constexpr int STORE_ROWS = Y_LAST ? STORE_N : 16, STORE_PITCH = (Y_LAST ? 16 : STORE_N) + 8;
constexpr int W_AT = X_STAGES * X_BYTES, STAGING = W_AT + W_STAGES * W_BYTES,
              BARRIERS = STAGING + CONSUMERS / 32 * STORE_ROWS * STORE_PITCH * (int)sizeof(Staged);
constexpr int SHARED_BYTES = BARRIERS + (X_STAGES + W_STAGES) * 16;
static_assert(SHARED_BYTES == SHARED, "must equal the size that the host allocates");
/// True if all filters that a block reads fit into shared memory: they are copied once.
constexpr bool FILTERS_STAY = FILTERS <= TILE_M && GROUPS == 1 &&
                              W_STAGES >= CHUNKS * TAPS / SHIFTS;

typedef float Sums[SHIFTS][TILE_N / 8][4];

typedef Ring<X_STAGES, X_BYTES> Segments;
typedef Ring<W_STAGES, W_BYTES> Filters;

struct Unit {
  int group, filter, position;
  DEVICE explicit Unit(unsigned index) {
    constexpr unsigned COLUMNS = (FILTERS + TILE_M - 1) / TILE_M;
    filter = index % COLUMNS * TILE_M;
    group = index / COLUMNS % GROUPS;
    position = index / (COLUMNS * GROUPS) * TILE_P;
  }
};

/// The coordinates of a position of all images. Panels below each other are numbered consecutively,
/// unless images are FLAT, one row each.
struct Position {
  int image, d, h, w;
  DEVICE explicit Position(int number, int rows = 1) : image(number / (IMAGE * rows)) {
    constexpr int ACROSS_W = FLAT ? PADDED_W : LINE;
    const int rest = number % (IMAGE * rows), all_h = PADDED_H * rows;
    d = rest / (all_h * PADDED_W), h = rest / ACROSS_W % all_h,
    w = rest / (all_h * ACROSS_W) % (PADDED_W / ACROSS_W) * ACROSS_W + rest % ACROSS_W;
  }
};

/// Copies the panel that begins at position `number`, as the taps of a segment read it.
DEVICE void copy_panel(unsigned to, const CUtensorMap& x, int number, const Segment& taps, int c,
                       int group, unsigned barrier) {
  const Position position(number, PAIR);
  const int d = FLAT ? 0 : position.d * SPLIT_D + taps.d * DILATION_D - LOW_D,
            h = FLAT ? 0 : position.h * SPLIT_H + taps.h % SPLIT_H - LOW_H;
  const int w = FLAT ? number % IMAGE : position.w + (SHIFTED ? 0 : taps.w * DILATION_W - LOW_W);
  if (X_LAST)
    copy_box(to, x, c + group * CHANNELS, w, h, d, position.image, barrier);
  else
    copy_box(to, x, w, h, d, c, position.image * GROUPS + group, barrier);
}

DEVICE void fetch(Segments segments, Filters filters, const CUtensorMap& x, const CUtensorMap& w,
                  unsigned all) {
  for (unsigned index = blockIdx.x; index < all; index += gridDim.x) {
    const Unit unit(index);
    for (int at = 0; at < CHUNKS * SEGMENTS; ++at, segments.step()) {
      const int c = at / SEGMENTS * DEPTH;
      const Segment segment(at % SEGMENTS);
      segments.await_free();
      expect_bytes(segments.full(), BOXES * BOX_ROWS * ROW_BYTES);
      UNROLLED for (int i = 0; i < BOXES; ++i) {
        const unsigned to = segments.buffer() + i * BOX_ROWS * ROW_BYTES;
        if (DIRECT)
          copy_panel(to, x,
                     unit.position * PAIR + segment.h / SPLIT_H * DILATION_H * LINE + i * PANEL,
                     segment, c, unit.group, segments.full());
        if (!DIRECT)
          copy_box(to, x, MERGED > 1 || c < STORED ? c : c - STORED,
                   segment.pixel() * GROUPS + unit.group,
                   unit.position + segment.start() + i * BOX_ROWS, segments.full());
      }
      if (FILTERS_STAY && index != blockIdx.x) continue;
      for (int i = 0; i < segment.count(); i += SHIFTS, filters.step()) {
        if (!FILTERS_STAY) filters.await_free();
        expect_bytes(filters.full(), W_BYTES);
        UNROLLED for (int t = 0; t < SHIFTS; ++t)
            copy_box(filters.buffer() + t * TAP_BYTES, w, c, segment.tap(i + t),
                     unit.group * FILTERS + unit.filter, filters.full());
      }
    }
  }
}

/// A wgmma descriptor of rows of ROW_BYTES that begin at any row.
DEVICE unsigned long long rows_at(unsigned at) {
  return (ROW_BYTES == 128 ? 1ull : 2ull) << 62 | (unsigned long long)(8 * ROW_BYTES >> 4) << 32 |
         1ull << 16 | (at & 0x3ffff) >> 4;
}
/// A wgmma descriptor of a segment with pixels as the contiguous axis, beginning at any panel;
/// groups of 16 channels are PRODUCT_BYTES apart.
constexpr int PRODUCT_BYTES = ACROSS ? PANEL * 32 : 32;
DEVICE unsigned long long panels_at(unsigned at) {
  return (PANEL == 64   ? 1ull
          : PANEL == 32 ? 2ull
                        : 3ull)
             << 62 |
         (unsigned long long)PANEL << 32 | (unsigned long long)(PANEL * ROW_BYTES >> 4) << 16 |
         (at & 0x3ffff) >> 4;
}
/// Stores two results with a distance of PITCH.
template <int PITCH>
DEVICE void put_two(float* to, float a, float b) {
  if (PITCH == 1)
    *(float2*)to = make_float2(a, b);
  else
    to[0] = a, to[PITCH] = b;
}
template <int PITCH>
DEVICE void put_two(Operand* to, float a, float b) {
  const unsigned both = pack(a, b);
  if (PITCH == 1)
    *(unsigned*)to = both;
  else
    *(unsigned short*)to = (unsigned short)both,
               *(unsigned short*)(to + PITCH) = (unsigned short)(both >> 16);
}

DEVICE int set() { return threadIdx.x / SET_THREADS; }
DEVICE int group_m() { return threadIdx.x / 128 % GROUPS_M; }
DEVICE int group_p() { return threadIdx.x / 128 / GROUPS_M % GROUPS_P; }
DEVICE void wait_for_turn() {
  asm volatile("bar.sync %0, %1;" ::"r"(2 + set()), "n"(CONSUMERS) : "memory");
}
DEVICE void pass_turn() {
  asm volatile("bar.arrive %0, %1;" ::"r"(3 - set()), "n"(CONSUMERS) : "memory");
}

/// Adds finished sums of products to those in registers.
DEVICE void promote(Sums& sums, Sums& parts) {
  wait_products<0>();
  settle(parts);
  UNROLLED for (int t = 0; t < SHIFTS; ++t) {
    UNROLLED for (int j = 0; j < TILE_N / 8; ++j) {
      UNROLLED for (int i = 0; i < 4; ++i) sums[t][j][i] += parts[t][j][i];
    }
  }
  clear(parts);
}

DEVICE void multiply_unit(Segments& segments, Filters& filters, Sums& sums, bool pass) {
  Sums apart;
  Sums& parts = PROMOTED > 0 ? apart : sums;
  clear(sums);
  if (PROMOTED > 0) clear(parts);
  Segments segment_before = segments;
  Filters before = filters;
  for (int at = 0; at < CHUNKS * SEGMENTS; ++at) {
    segments.await_full();
    const Segment segment(at % SEGMENTS);
#pragma unroll 1
    for (int i = 0; i < segment.count(); i += SHIFTS, filters.step()) {
      filters.await_full();
      const unsigned at_b = segments.buffer() +
                            (group_p() * TILE_N * PAIR + segment.distance(i)) * ROW_BYTES;
      const unsigned long long a = rows_at(filters.buffer() + group_m() * 64 * ROW_BYTES),
                               b = ACROSS ? panels_at(at_b) : rows_at(at_b);
      start_products();
      UNROLLED for (int t = 0; t < SHIFTS; ++t) {
        UNROLLED for (int step = 0; step < STEPS; ++step) multiply(
            parts[t], further(a, t * TAP_BYTES + step * 32), further(b, step * PRODUCT_BYTES));
      }
      commit_products();
      if (at + i == 0) continue;
      wait_products<1>();
      if (!FILTERS_STAY) {
        before.release();
        before.step();
      }
      if (i > 0) continue;
      segment_before.release();
      segment_before.step();
    }
    if (PROMOTED > 0 && (at + 1) % (PROMOTED > 0 ? PROMOTED : 1) == 0) promote(sums, parts);
    segments.step();
  }
  if (pass) pass_turn();
  if (PROMOTED > 0) promote(sums, parts);
  wait_products<0>();
  settle(parts);
  if (!FILTERS_STAY) before.release();
  segment_before.release();
}

/// The result at position 8 j + 2 (lane % 4) + e of a row of sums. SHIFTED: adds the sums of the
/// taps, each from the position at the tap's offset; those come from neighbouring lanes. Rows of
/// positions have zeros around them.
DEVICE float result(const Sums& sums, int j, int half, int e) {
  if (!SHIFTED) return sums[0][j][half * 2 + e];
  const int lane = threadIdx.x % 32, pair = lane % 4;
  float all = 0;
  UNROLLED for (int t = 0; t < SHIFTS; ++t) {
    const int apart = e + t * DILATION_W - LOW_W, lanes = apart >> 1, at = half * 2 + (apart & 1);
    const int other = j + (lanes < 0 ? -1 : 1);
    const bool same_line = other >= 0 && other < TILE_N / 8 && other * 8 / LINE == j * 8 / LINE;
    const float from_other = same_line ? sums[t][same_line ? other : j][at] : 0;
    const float given = (unsigned)(pair - lanes) < 4 ? sums[t][j][at] : from_other;
    all += lanes == 0 ? given : __shfl_sync(~0u, given, (lane & ~3) | ((pair + lanes) & 3));
  }
  return all;
}

/// Neighbouring elements of the result, from phase r of a position on: EACH phases of ALONG
/// positions.
typedef Units<T, Y_PIECE> Piece;
template <class S>
DEVICE Units<S, Y_PIECE> piece_at(const S* staging) {
  constexpr int EACH = Y_PIECE < PHASES_W ? Y_PIECE : PHASES_W, ALONG = Y_PIECE / EACH;
  Units<S, Y_PIECE> piece;
  UNROLLED for (int r = 0; r < EACH; ++r) {
    const auto part = *(const Units<S, ALONG>*)(staging + r * STORE_PITCH);
    UNROLLED for (int i = 0; i < ALONG; ++i) piece.element[i * EACH + r] = part.element[i];
  }
  return piece;
}

/// The epilogue counts pixels of the result.
DEVICE long long pixel_number(long long pixel) { return pixel; }

/// The results of neighbouring pixels of a filter.
DEVICE Piece finished(const Units<Staged, Y_PIECE>& sums, int filter, long long pixel,
                      const Epilogue& epilogue) {
  if (!HAS_EPILOGUE) return *(const Piece*)&sums;
  const Epilogue::Row row = epilogue.row(filter);
  Epilogue::Element elements[Y_PIECE];
  epilogue.elements(elements, filter, pixel);
  Piece piece;
  UNROLLED for (int e = 0; e < Y_PIECE; ++e)
      piece.element[e] = T(epilogue(float(sums.element[e]), 0.0f, row, epilogue.column(pixel + e),
                                    elements[e], filter, pixel + e));
  return piece;
}

/// Stores 16 × STORE_N staged results of a warp: lanes write neighbouring elements, the phases of a
/// position and then its neighbours.
DEVICE void store_lines(const Staged* staging, T* __restrict__ y, int top, int first, int positions,
                        const Epilogue& epilogue) {
  constexpr int COLUMNS = STORE_N / STEP_X * PHASES_W;
  static_assert(Y_LAST || COLUMNS % (32 * Y_PIECE) == 0, "lanes write one line at a time");
  // Rows that are finished at the same time: an SM has few warps, so each must hide latencies.
  constexpr int LINES = (15 + PHASES_W) / PHASES_W, MOST = Y_PIECE < 8 ? 8 / Y_PIECE : 1,
                TOGETHER = LINES < MOST ? LINES : MOST;
  const int lane = threadIdx.x % 32;
  UNROLLED for (int k = 0; k < COLUMNS; k += 32 * Y_PIECE) {
    const int column = (k + lane * Y_PIECE) / PHASES_W, r = lane * Y_PIECE % PHASES_W,
              number = first + column * STEP_X;
    const Position position(number);
    const int out_w = position.w / STEP_X * PHASES_W + r - CROP_W;
    const bool exists = number < positions && position.d < POSITIONS_D &&
                        position.h < POSITIONS_H && position.w / STEP_X < POSITIONS_W &&
                        (unsigned)out_w < OUT_W;
    T* const to = y + (long long)position.image * Y_IMAGE + out_w * Y_W;
    UNROLLED for (int base = 0; base < 16; base += TOGETHER * PHASES_W) {
      Piece pieces[TOGETHER];
      bool there[TOGETHER];
      long long at[TOGETHER];
      UNROLLED for (int i = 0; i < TOGETHER; ++i) {
        const int row = base + i * PHASES_W, m = top + row;
        // `top` is a multiple of 16.
        const int phase = 16 % ROW_PHASES == 0 ? row % ROW_PHASES : m % ROW_PHASES;
        const int out_d = position.d * PHASES_D + phase / (PHASES_H * PHASES_W) - CROP_D,
                  out_h = position.h * PHASES_H + phase / PHASES_W % PHASES_H - CROP_H;
        there[i] = exists && m < FILTERS && (unsigned)out_d < OUT_D && (unsigned)out_h < OUT_H;
        at[i] = m / ROW_PHASES * Y_FILTER + out_d * Y_D + out_h * Y_H;
        const long long pixel = ((position.image * (long long)OUT_D + out_d) * OUT_H + out_h) *
                                    OUT_W +
                                out_w;
        pieces[i] = finished(piece_at(staging + (row + r) * STORE_PITCH + column),
                             there[i] ? m / ROW_PHASES : 0, there[i] ? pixel : 0, epilogue);
      }
      UNROLLED for (int i = 0; i < TOGETHER; ++i) {
        if (there[i]) *(Piece*)(to + at[i]) = pieces[i];
      }
    }
  }
}
/// The same for results whose filters are neighbours in memory: rows of a phase are neighbours too.
DEVICE void store_pixels(const Staged* staging, T* __restrict__ y, int top, int first,
                         int positions, const Epilogue& epilogue) {
  constexpr int PIECES = 16 / Y_PIECE;  // of a position
  constexpr int PHASE_FILTERS = FILTERS / ROW_PHASES;
  const int row_at = threadIdx.x % PIECES * Y_PIECE, phase = (top + row_at) / PHASE_FILTERS,
            filter = (top + row_at) % PHASE_FILTERS;
  Epilogue::Column columns[Y_PIECE];
  UNROLLED for (int e = 0; e < Y_PIECE; ++e)
      columns[e] = epilogue.column(min(filter + e, PHASE_FILTERS - 1));
#pragma unroll 1  // sums take the registers
  for (int column = threadIdx.x % 32 / PIECES; column < STORE_N; column += 32 / PIECES) {
    const Position position(first + column);
    const int d = position.d * PHASES_D + phase / (PHASES_H * PHASES_W) - CROP_D,
              h = position.h * PHASES_H + phase / PHASES_W % PHASES_H - CROP_H,
              w = position.w * PHASES_W + phase % PHASES_W - CROP_W;
    if (first + column >= positions || position.d >= POSITIONS_D || position.h >= POSITIONS_H ||
        position.w >= POSITIONS_W || (unsigned)d >= OUT_D || (unsigned)h >= OUT_H ||
        (unsigned)w >= OUT_W || phase >= ROW_PHASES)
      continue;
    const auto sums = *(const Units<Staged, Y_PIECE>*)(staging + column * STORE_PITCH + row_at);
    Piece piece = *(const Piece*)&sums;
    if (HAS_EPILOGUE) {
      const long long pixel = ((position.image * (long long)OUT_D + d) * OUT_H + h) * OUT_W + w;
      const Epilogue::Row row = epilogue.row(pixel);
      Epilogue::Element elements[Y_PIECE];
      epilogue.elements(elements, pixel, filter);
      UNROLLED for (int e = 0; e < Y_PIECE; ++e) piece.element[e] = T(
          epilogue(float(sums.element[e]), 0.0f, row, columns[e], elements[e], pixel, filter + e));
    }
    *(Piece*)(y + position.image * Y_IMAGE + d * Y_D + h * Y_H + w * Y_W + filter) = piece;
  }
}

/// Stores the sums, 16 × STORE_N of a warp at a time through shared memory.
DEVICE void store(unsigned char* shared, const Sums& sums, T* __restrict__ y, const Unit& unit,
                  int positions, int shift, const Epilogue& epilogue) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Staged* const staging = (Staged*)(shared + STAGING) + warp * STORE_ROWS * STORE_PITCH;
  const int top = unit.filter + group_m() * 64 + warp % 4 * 16;
  y += unit.group * Y_GROUP;
  UNROLLED for (int first = 0; first < TILE_N; first += STORE_N) {
    UNROLLED for (int j = 0; j < STORE_N / 8; ++j) {
      UNROLLED for (int half = 0; half < 2; ++half) {
        const int row = lane / 4 + half * 8, column = (j * 8 + lane % 4 * 2) / STEP_X;
        float two[2] = {result(sums, first / 8 + j, half, 0), result(sums, first / 8 + j, half, 1)};
        if (SCALED) two[0] = shifted(two[0], shift), two[1] = shifted(two[1], shift);
        if (STEP_X == 2)
          staging[row * STORE_PITCH + column] = Staged(two[0]);
        else if (Y_LAST)
          put_two<STORE_PITCH>(staging + column * STORE_PITCH + row, two[0], two[1]);
        else
          put_two<1>(staging + row * STORE_PITCH + column, two[0], two[1]);
      }
    }
    __syncwarp();
    const int number = unit.position + group_p() * TILE_N + first;
    if (Y_LAST)
      store_pixels(staging, y, top, number, positions, epilogue);
    else
      store_lines(staging, y, top, number, positions, epilogue);
    __syncwarp();
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    conv(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap w,
         T* __restrict__ y, int images, const unsigned* __restrict__ largest EPILOGUE_PARAMETERS) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const unsigned at = (unsigned)__cvta_generic_to_shared(shared);
  const int positions = images * IMAGE;
  const unsigned all = (unsigned)((positions + TILE_P - 1) / TILE_P) *
                       ((FILTERS + TILE_M - 1) / TILE_M) * GROUPS;
  Segments segments(at, at + BARRIERS);
  Filters filters(at + W_AT, at + BARRIERS + X_STAGES * 16);
  if (threadIdx.x == 0) {
    segments.make(SET_THREADS / 32);
    filters.make(SET_THREADS / 32);
  }
  __syncthreads();
  if (threadIdx.x >= CONSUMERS) {
    if (FETCHERS == 128) give_registers<24>();
    if (threadIdx.x == CONSUMERS) fetch(segments, filters, x, w, all);
    return;
  }
  if (FETCHERS == 128) take_registers<240>();
  const int shift = SCALED ? -final_shift(largest, true) - final_shift(largest, false) : 0;
  Sums sums;
  bool mine = set() == 0;
  for (unsigned index = blockIdx.x; index < all; index += gridDim.x, mine = SETS == 1 || !mine) {
    if (!mine) {
      segments.skip(CHUNKS * SEGMENTS);
      if (!FILTERS_STAY) filters.skip(CHUNKS * TAPS / SHIFTS);
      continue;
    }
    if (SETS > 1 && index != blockIdx.x) wait_for_turn();
    if (FILTERS_STAY) filters.stage = filters.parity = 0;
    multiply_unit(segments, filters, sums, SETS > 1 && index + gridDim.x < all);
    store(shared, sums, y, Unit(index), positions, shift, EPILOGUE(0));
  }
}
