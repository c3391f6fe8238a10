// y[n, p, q, k] = conv(x[n, h, w, c], w[k, r, s, c]), channels last, as the matrix product y[npq, k] = x'[npq, rsc] · w[k, rsc]ᵀ:
// row npq of x' is gathered from the image while it is copied, zeros where the filter reaches over the edge. C is a multiple
// of 8, so that a unit never leaves its pixel.
constexpr int DEPTH = R * S * C;

/// TILE_M pixels × TILE_K of x', walking along its rows. A thread keeps its unit column.
constexpr int PIXEL_STRIDE = THREADS / (TILE_K / 8), PIXEL_COUNT = (TILE_M + PIXEL_STRIDE - 1) / PIXEL_STRIDE;
struct PixelWalker : Pixels<PIXEL_COUNT, PIXEL_STRIDE> {
  static constexpr int UNITS = TILE_K / 8, STRIDE = PIXEL_STRIDE, COUNT = PIXEL_COUNT;
  const T* x;
  int position;  // in DEPTH, of this thread's unit
  int width;

  DEVICE PixelWalker(const T* x, long long first_row, long long pixels, int first, int h, int w, int p, int q)
      : Pixels((unsigned)first_row + threadIdx.x / UNITS, pixels, h, w, p, q, C / 8), x(x), position(first + threadIdx.x % UNITS * 8), width(w) {}
  DEVICE void fetch(unsigned char* shared, unsigned at) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
    const unsigned tap = (unsigned)position / C, c = (unsigned)position % C, r = tap / S, s = tap % S;
    const int offset = (int)((r * DILATION * width + s * DILATION) * (C / 8) + c / 8);
    const bool inside = position < DEPTH;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (TILE_M % STRIDE != 0 && row + i * STRIDE >= TILE_M) break;
      const bool valid = inside && meets(i, r, s);
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
