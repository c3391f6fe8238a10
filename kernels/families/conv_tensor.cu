// y[n, p, q, k] = conv(x[n, h, w, c], w[k, r, s, c]), channels last, as the matrix product y[npq, k] = x'[npq, rsc] · w[k, rsc]ᵀ:
// row npq of x' is gathered from the image while it is copied, zeros where the filter reaches over the edge. C is a multiple
// of 8, so that a unit never leaves its pixel.
constexpr int DEPTH = R * S * C;

/// Bit r: filter row r lies inside the image; bit R + s: column s.
template <bool WIDE> struct MaskOf { typedef unsigned type; };
template <> struct MaskOf<true> { typedef unsigned long long type; };
typedef MaskOf<(R + S > 32)>::type Mask;

/// TILE_M pixels × TILE_K of x', walking along its rows. A thread keeps its unit column.
struct PixelWalker {
  static constexpr int UNITS = TILE_K / 8;
  static constexpr int STRIDE = THREADS / UNITS;
  static constexpr int COUNT = (TILE_M + STRIDE - 1) / STRIDE;
  const T* x;
  int corner[COUNT];  // unit index of the filter's first tap
  Mask mask[COUNT];
  int position;  // in DEPTH, of this thread's unit
  int width;

  DEVICE PixelWalker(const T* x, long long first_row, long long pixels, int first, int h, int w, int p, int q)
      : x(x), position(first + threadIdx.x % UNITS * 8), width(w) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const unsigned row = (unsigned)first_row + threadIdx.x / UNITS + i * STRIDE;
      const unsigned image = row / (unsigned)(p * q), rest = row % (unsigned)(p * q);
      const int top = (int)(rest / q) * STEP - PADDING, left = (int)(rest % q) * STEP - PADDING;
      corner[i] = (((int)image * h + top) * w + left) * (C / 8);
      mask[i] = 0;
      if (row >= pixels) continue;
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if (top + r * DILATION >= 0 && top + r * DILATION < h) mask[i] |= (Mask)1 << r;
      }
#pragma unroll
      for (int s = 0; s < S; ++s) {
        if (left + s * DILATION >= 0 && left + s * DILATION < w) mask[i] |= (Mask)1 << (R + s);
      }
    }
  }
  DEVICE void fetch(unsigned char* shared, unsigned at) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
    const unsigned tap = (unsigned)position / C, c = (unsigned)position % C, r = tap / S, s = tap % S;
    const int offset = (int)((r * DILATION * width + s * DILATION) * (C / 8) + c / 8);
    const bool inside = position < DEPTH;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (TILE_M % STRIDE != 0 && row + i * STRIDE >= TILE_M) break;
      const bool valid = inside && (mask[i] >> r & mask[i] >> (R + s) & 1) != 0;
      copy_unit<8>(shared, at + swizzled<UNITS>(row + i * STRIDE, unit), x + (long long)(corner[i] + offset) * 8, valid ? 8 : 0);
    }
    position += TILE_K;
  }
};

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) conv2d(const T* __restrict__ x, const T* __restrict__ w, OUT* __restrict__ y,
                                                            int images, int height, int width, int filters, int p, int q) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const long long pixels = (long long)images * p * q;
  constexpr int tiles = (DEPTH + TILE_K - 1) / TILE_K;
  const int first = tiles * blockIdx.y / SPLIT_K;
  const int last = tiles * (blockIdx.y + 1) / SPLIT_K;
  const unsigned all = tile_count(pixels, filters);
  unsigned at_hand = blockIdx.x, ahead = blockIdx.x;  // tiles of the result: being multiplied, being fetched
  Tile next = tile_at(ahead, pixels, filters);
  PixelWalker rows(x, next.row, pixels, first * TILE_K, height, width, p, q);
  RowWalker<TILE_N, 8> columns(w, DEPTH, filters, next.column, first * TILE_K, DEPTH);
  int fetched = 0;
  const auto fetch = [&](int at) {
    if (PERSISTENT && fetched == tiles) {
      fetched = 0;
      ahead += gridDim.x;
      next = tile_at(ahead, pixels, filters);
      rows = PixelWalker(x, next.row, pixels, 0, height, width, p, q);
      columns = RowWalker<TILE_N, 8>(w, DEPTH, filters, next.column, 0, DEPTH);
    }
    rows.fetch(shared, at);
    columns.fetch(shared, at + A_BYTES);
    ++fetched;
  };
  Sums sums;
  const auto finish = [&] {
    store_result(shared, sums, y, tile_at(at_hand, pixels, filters), pixels, filters);
    at_hand += gridDim.x;
  };
  const int mine = PERSISTENT ? (int)((all - blockIdx.x + gridDim.x - 1) / gridDim.x) : 1;
  multiply_tiles(shared, (last - first) * mine, last - first, sums, fetch, finish);
  leave();
}
