// y[n, p, q, k] = conv(x[n, h, w, c], w[k, r, s, c]) in float32, channels last, as the matrix product
// y[npq, k] = x'[npq, rsc] · w[k, rsc]ᵀ: row npq of x' is gathered from the image while it is copied, zeros where the filter
// reaches over the edge.
constexpr int DEPTH = R * S * C;
constexpr int STEP_UNIT = C % 4 == 0 ? 4 : 1;  // floats that surely belong to one pixel

/// TILE_M pixels × TILE_K of x', walking along its rows. A thread keeps its unit column.
constexpr int PIXEL_STRIDE = THREADS / K_UNITS, PIXEL_COUNT = (TILE_M + PIXEL_STRIDE - 1) / PIXEL_STRIDE;
struct PixelWalker : Pixels<PIXEL_COUNT, PIXEL_STRIDE> {
  static constexpr int STRIDE = PIXEL_STRIDE, COUNT = PIXEL_COUNT;
  const float* x;
  int position;  // in DEPTH, of this thread's unit
  int width;

  DEVICE PixelWalker(const float* x, long long first_row, long long pixels, int first, int h, int w, int p, int q)
      : Pixels((unsigned)first_row + threadIdx.x / K_UNITS, pixels, h, w, p, q, C / STEP_UNIT), x(x), position(first + threadIdx.x % K_UNITS * 4), width(w) {}
  DEVICE void fetch(unsigned char* shared, unsigned at) {
    const int row = threadIdx.x / K_UNITS, unit = threadIdx.x % K_UNITS;
#pragma unroll
    for (int e = 0; e < 4; e += STEP_UNIT) {
      const unsigned tap = (unsigned)(position + e) / C, c = (unsigned)(position + e) % C, r = tap / S, s = tap % S;
      const int offset = (int)((r * DILATION * width + s * DILATION) * (C / STEP_UNIT) + c / STEP_UNIT);
      const bool inside = position + e < DEPTH;
#pragma unroll
      for (int i = 0; i < COUNT; ++i) {
        if (STRIDE > TILE_M && row >= TILE_M) break;
        const bool valid = inside && meets(i, r, s);
        copy_async<STEP_UNIT * 4>(shared_address(shared) + at + row_place<K_UNITS>(row + i * STRIDE, unit) + e * 4,
                                  x + (long long)(corner[i] + offset) * STEP_UNIT, valid);
      }
    }
    position += TILE_K;
  }
};

extern "C" __global__ void __launch_bounds__(THREADS) conv2d(const float* __restrict__ x, const float* __restrict__ w,
                                                            float* __restrict__ y, int images, int height, int width,
                                                            int filters, int p, int q) {
  extern __shared__ float4 shared[];
  const long long pixels = (long long)images * p * q;
  const Tile tile = tile_of_block(pixels, filters);
  constexpr int tiles = (DEPTH + TILE_K - 1) / TILE_K;
  const int first = tiles * blockIdx.y / SPLIT_K;
  const int last = tiles * (blockIdx.y + 1) / SPLIT_K;
  PixelWalker rows(x, tile.row, pixels, first * TILE_K, height, width, p, q);
  RowWalker<TILE_N, DEPTH % 4 == 0 ? 4 : 1> columns(w, DEPTH, filters, tile.column, first * TILE_K, DEPTH);
  Sums sums;
  multiply_tiles(shared, last - first, sums, [&](int at) {
    rows.fetch((unsigned char*)shared, at);
    columns.fetch((unsigned char*)shared, at + A_SIZE * 16);
  });
  store_tile(sums, y + blockIdx.y * pixels * filters, tile, pixels, filters);
}
