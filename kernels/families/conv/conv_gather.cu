// y[filter, pixel] = w[filter, tap, channel] · x[pixel, tap, channel]ᵀ, or the other way round
// where PIXELS_FIRST: rows of x are gathered while they are copied, zeros where the filter reaches
// over the edge. Both x and w have their channels last, of each group a whole number of units.
template <bool FIRST, class A, class B>
struct Pick {
  typedef A type;
};
template <class A, class B>
struct Pick<false, A, B> {
  typedef B type;
};

struct Phase {
  LineD d;
  LineH h;
  LineW w;
  DEVICE Phase() : d(phase_d()), h(phase_h()), w(phase_w()) {}
  DEVICE int depth() const { return d.count * h.count * w.count * C; }
};
/// The position of a thread's unit along the depth.
struct Tap {
  int d, h, w, c;
  bool inside;
  DEVICE Tap(int position, const Phase& phase) : c(position % C), inside(position < phase.depth()) {
    const int tap = position / C;
    w = inside ? tap % phase.w.count : 0;
    h = inside ? tap / phase.w.count % phase.h.count : 0;
    d = inside ? tap / (phase.w.count * phase.h.count) : 0;
  }
};

/// Shared by walkers over ROWS rows of a tile: a thread keeps its column of units.
template <int ROWS>
struct Rows {
  static constexpr int UNITS = TILE_K / UNIT;
  static constexpr int STRIDE = THREADS / UNITS;
  static constexpr int COUNT = (ROWS + STRIDE - 1) / STRIDE;
  DEVICE static int row(int i) { return threadIdx.x / UNITS + i * STRIDE; }
  DEVICE static bool beyond(int i) { return ROWS % STRIDE != 0 && row(i) >= ROWS; }
  DEVICE static void copy(unsigned char* shared, unsigned at, int i, const Operand* from,
                          bool valid) {
    copy_async<16>(
        shared_address(shared) + at + unit_offset<false, UNITS>(row(i), threadIdx.x % UNITS), from,
        valid);
  }
};

template <int ROWS>
struct PixelWalker : Rows<ROWS> {
  typedef Rows<ROWS> Base;
  static constexpr int WIDTH = X_PIXEL / UNIT;  // units from pixel to pixel
  const Operand* x;
  // the unit that the first tap reads, and its coordinates
  int corner[Base::COUNT], d[Base::COUNT], h[Base::COUNT], w[Base::COUNT];

  DEVICE PixelWalker(const Operand* x, const Operand*, const Phase& phase, long long first_row,
                     long long pixels)
      : x(x + group() * X_GROUP) {
    UNROLLED for (int i = 0; i < Base::COUNT; ++i) {
      const Pixel pixel = pixel_at((unsigned)first_row + Base::row(i), (unsigned)pixels);
      d[i] = pixel.d * STRIDE_D + phase.d.first, h[i] = pixel.h * STRIDE_H + phase.h.first,
      w[i] = pixel.w * STRIDE_W + phase.w.first;
      corner[i] = (((pixel.image * IN_D + d[i]) * IN_H + h[i]) * IN_W + w[i]) * WIDTH;
      if (!pixel.exists) w[i] = -(1 << 30);
    }
  }
  DEVICE void fetch(unsigned char* shared, unsigned at, const Tap& tap, const Phase&) {
    const int offset = ((tap.d * LineD::MOVE * IN_H + tap.h * LineH::MOVE) * IN_W +
                        tap.w * LineW::MOVE) *
                           WIDTH +
                       tap.c / UNIT;
    UNROLLED for (int i = 0; i < Base::COUNT; ++i) {
      if (Base::beyond(i)) break;
      const bool valid = tap.inside && (unsigned)(w[i] + tap.w * LineW::MOVE) < IN_W &&
                         (IN_H * TAPS_H == 1 || (unsigned)(h[i] + tap.h * LineH::MOVE) < IN_H) &&
                         (IN_D * TAPS_D == 1 || (unsigned)(d[i] + tap.d * LineD::MOVE) < IN_D);
      Base::copy(shared, at, i, valid ? x + (long long)(corner[i] + offset) * UNIT : x, valid);
    }
  }
};

template <int ROWS>
struct FilterWalker : Rows<ROWS> {
  typedef Rows<ROWS> Base;
  static constexpr int DEPTH = TAPS_D * TAPS_H * TAPS_W * C;
  const Operand* w;
  int rows;  // that exist, from the tile's first on

  DEVICE FilterWalker(const Operand*, const Operand* w, const Phase&, long long first_row,
                      long long)
      : w(w + ((long long)group() * FILTERS + first_row) * DEPTH), rows(FILTERS - (int)first_row) {}
  DEVICE void fetch(unsigned char* shared, unsigned at, const Tap& tap, const Phase& phase) {
    const int d = phase.d.tap + tap.d * LineD::STEP, h = phase.h.tap + tap.h * LineH::STEP,
              s = phase.w.tap + tap.w * LineW::STEP;
    const int offset = ((d * TAPS_H + h) * TAPS_W + s) * C + tap.c;
    UNROLLED for (int i = 0; i < Base::COUNT; ++i) {
      if (Base::beyond(i)) break;
      const bool valid = tap.inside && Base::row(i) < rows;
      Base::copy(shared, at, i, valid ? w + (long long)Base::row(i) * DEPTH + offset : w, valid);
    }
  }
};

typedef Pick<PIXELS_FIRST, PixelWalker<TILE_M>, FilterWalker<TILE_M>>::type RowsOfA;
typedef Pick<PIXELS_FIRST, FilterWalker<TILE_N>, PixelWalker<TILE_N>>::type RowsOfB;

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    conv(const Operand* __restrict__ x, const Operand* __restrict__ w, OUT* __restrict__ y,
         int images, const unsigned* __restrict__ largest EPILOGUE_PARAMETERS) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const Phase phase;
  const long long pixels = (long long)images * ROUNDED, m = PIXELS_FIRST ? pixels : FILTERS,
                  n = PIXELS_FIRST ? FILTERS : pixels;
  const int tiles = (phase.depth() + TILE_K - 1) / TILE_K;
  const int first = tiles * blockIdx.y / SPLIT_K, last = tiles * (blockIdx.y + 1) / SPLIT_K;
  const unsigned all = tile_count(m, n);
  // tiles of the result: being multiplied, being fetched
  unsigned at_hand = blockIdx.x, ahead = blockIdx.x;
  Tile next = tile_at(ahead, m, n);
  RowsOfA rows(x, w, phase, next.row, pixels);
  RowsOfB columns(x, w, phase, next.column, pixels);
  const int start = threadIdx.x % (TILE_K / UNIT) * UNIT;
  int position = first * TILE_K + start, fetched = 0;
  const auto fetch = [&](int at) {
    if (PERSISTENT && fetched == tiles) {
      fetched = 0;
      position = start;
      ahead += gridDim.x;
      next = tile_at(ahead, m, n);
      rows = RowsOfA(x, w, phase, next.row, pixels);
      columns = RowsOfB(x, w, phase, next.column, pixels);
    }
    const Tap tap(position, phase);
    rows.fetch(shared, at, tap, phase);
    columns.fetch(shared, at + A_BYTES, tap, phase);
    position += TILE_K;
    ++fetched;
  };
  Sums sums;
  const int shift = SCALED ? -final_shift(largest, true) - final_shift(largest, false) : 0;
  const auto finish = [&] {
    UNROLLED for (int i = 0; SCALED && i < sizeof(Sums) / 4;
                  ++i)((float*)&sums)[i] = shifted(((float*)&sums)[i], shift);
    store_result(shared, sums, y, tile_at(at_hand, m, n), m, n, EPILOGUE(0));
    at_hand += gridDim.x;
  };
  const int mine = PERSISTENT ? (int)((all - blockIdx.x + gridDim.x - 1) / gridDim.x) : 1;
  multiply_tiles(shared, (last - first) * mine, last - first, sums, fetch, finish);
  leave();
}
