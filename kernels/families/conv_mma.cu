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
      if (STRIDE > TILE_M && row >= TILE_M) break;
      const bool valid = inside && (mask[i] >> r & mask[i] >> (R + s) & 1) != 0;
      copy_unit<8>(shared, at + swizzled<UNITS>(row + i * STRIDE, unit), x + (long long)(corner[i] + offset) * 8, valid ? 8 : 0);
    }
    position += TILE_K;
  }
};

extern "C" __global__ void __launch_bounds__(THREADS) conv2d(const T* __restrict__ x, const T* __restrict__ w, OUT* __restrict__ y,
                                                            int images, int height, int width, int filters, int p, int q) {
  extern __shared__ __align__(128) unsigned char shared[];
  const long long pixels = (long long)images * p * q;
  const Tile tile = tile_of_block(pixels, filters);
  constexpr int tiles = (DEPTH + TILE_K - 1) / TILE_K;
  const int first = tiles * blockIdx.y / SPLIT_K;
  const int last = tiles * (blockIdx.y + 1) / SPLIT_K;
  PixelWalker rows(x, tile.row, pixels, first * TILE_K, height, width, p, q);
  RowWalker<TILE_N, 8> columns(w, DEPTH, filters, tile.column, first * TILE_K, DEPTH);
  Sums sums;
  multiply_tiles(shared, last - first, sums, [&](int at) {
    rows.fetch(shared, at);
    columns.fetch(shared, at + A_BYTES);
  });
#if SPLIT_K > 1
  store_share(sums, y + blockIdx.y * pixels * filters, tile, pixels, filters);
#else
  store_tile(shared, sums, y, tile, pixels, filters);
#endif
}
