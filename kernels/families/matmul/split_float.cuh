// Float32 operands split into planes of a 16-bit type, so that tensor cores can multiply them
// (known as 3xBF16, or the Ozaki scheme):
//     PLANES = 3, bfloat16:  x = p0 + p1 + p2                  all 24 bits
//     PLANES = 2, float16:   x · 2^s = p0 + p1 · 2^-12         23 bits
//     PLANES = 1, float16:   x · 2^s = p0                      11 bits, as TF32 has
// Each plane is the remainder of the planes before it, rounded to nearest. Example with three
// planes: x = 1.2345678 gives p0 = 1.234375, p1 = 0.00019264, p2 = 1.6e-7. float16 has few
// exponents: one power of two 2^s per row of a and per column of b brings its largest element into
// [2^14, 2^15). Elements below 2^TINY lose their last bits, and infinities become NaN; results that
// they may have spoilt are computed again (gemm_split_float.cu).
//
// Planes are stored in the layout that tensor cores read from shared memory: in chunks of LINES
// rows of a, or columns of b, by DEPTH elements along k, one plane after the other. Rows of a chunk
// of a have 64 bytes along k and are swizzled among 64 bytes; rows of a chunk of b run along n,
// have 128 bytes and are swizzled among 128, unless b is [n, k] (B_TRANSPOSED): then they are like
// those of a. Chunks follow each other along k, then along m or n. blockIdx.y is the batch. Without
// scales the arguments that hold them are not read.
constexpr bool SCALED = PLANES < 3;
constexpr int LINES = 64, DEPTH = 32;
constexpr int PLANE_BYTES = LINES * DEPTH * 2;
constexpr int CHUNK_BYTES = PLANES * PLANE_BYTES;
constexpr int LOW_SHIFT = PLANES == 2 ? 12 : 0;
constexpr int CHUNKS_PER_GROUP = 8;  // that a block splits, along k
/// Rounding an element below 2^TINY to planes may err by half of the last plane's smallest number,
/// 2^TINY_ERROR.
constexpr int TINY = SCALED ? -13 : -109, TINY_ERROR = PLANES == 3 ? -134 : PLANES == 2 ? -37 : -25;

/// Chunks of zeros fill the last of those that are summed at once.
DEVICE int chunks_along(long long k) {
  return (int)((k + DEPTH * PROMOTE - 1) / (DEPTH * PROMOTE) * PROMOTE);
}
DEVICE int groups_along(long long k) {
  return (chunks_along(k) + CHUNKS_PER_GROUP - 1) / CHUNKS_PER_GROUP;
}

/// Magnitudes in a part of a matrix.
struct Extent {
  unsigned largest;  ///< finite one, as the bits of a float, which are ordered as their values are
  unsigned tiny;     ///< elements below 2^TINY, zeros not counted
};
DEVICE void extend(Extent& extent, Extent other) {
  extent.largest = max(extent.largest, other.largest);
  extent.tiny += other.tiny;
}
DEVICE void extend(Extent& extent, float value) {
  const unsigned bits = __float_as_uint(value) & 0x7fffffffu;
  extend(extent, {min(bits, 0x7f7fffffu), bits != 0 && bits < (unsigned)(TINY + 127) << 23});
}
DEVICE void extend_over_warp(Extent& extent) {
  extent.largest = __reduce_max_sync(~0u, extent.largest);
  extent.tiny = __reduce_add_sync(~0u, extent.tiny);
}
/// This block's matrix of several with `elements` elements each; the only one, if there is one for
/// all.
template <class E>
DEVICE E* of_batch(E* first, bool batched, long long elements) {
  return first + (batched ? blockIdx.y * elements : 0);
}
/// Rows of a, or columns of b, of whole tiles, in units of LINES.
DEVICE long long bands_of(long long lines, int tile) {
  return (lines + tile - 1) / tile * (tile / LINES);
}
DEVICE float power_of_two(int exponent) { return __int_as_float((exponent + 127) << 23); }

/// `count` of four neighbours, zeros for the others. Aligned ones exist all or none.
template <bool ALIGNED>
DEVICE float4 load_four(const float* from, long long count) {
  if (ALIGNED) return count > 0 ? *(const float4*)from : make_float4(0, 0, 0, 0);
  return make_float4(count > 0 ? from[0] : 0.0f, count > 1 ? from[1] : 0.0f,
                     count > 2 ? from[2] : 0.0f, count > 3 ? from[3] : 0.0f);
}

constexpr int TOP_EXPONENT = 14;
// Parts of the rows of b whose magnitudes are measured in parallel.
constexpr int STRETCHES = B_TRANSPOSED ? 1 : 16;

/// The exponent of a magnitude given by its bits; denormal ones too.
DEVICE int exponent_of(unsigned bits) {
  return bits >= 0x00800000u ? (int)(bits >> 23) - 127 : -118 - __clz(bits);
}
DEVICE unsigned largest_of(float4 v) {
  const unsigned x = __float_as_uint(v.x) & 0x7fffffffu, y = __float_as_uint(v.y) & 0x7fffffffu;
  const unsigned z = __float_as_uint(v.z) & 0x7fffffffu, w = __float_as_uint(v.w) & 0x7fffffffu;
  return max(max(x, y), max(z, w));
}

/// A row of a, or of a transposed b, by each warp.
template <bool ALIGNED>
DEVICE void measure_row(const float* a, unsigned* rows, long long row, long long m, long long k) {
  if (row >= m) return;
  unsigned largest = 0;
#pragma unroll 4
  for (long long at = threadIdx.x % 32 * 4; at < k; at += 128)
    largest = max(largest, largest_of(load_four<ALIGNED>(a + row * k + at, k - at)));
  largest = __reduce_max_sync(~0u, largest);
  if (threadIdx.x % 32 == 0) rows[row] = largest;
}

/// 128 columns of b, one of STRETCHES parts of their rows: every warp takes each eighth row.
DEVICE void measure_columns(const float* b, unsigned* columns, long long first, int stretch,
                            long long n, long long k) {
  __shared__ unsigned found[8][128];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long column = first + lane * 4;
  unsigned largest[4] = {};
#pragma unroll 4
  for (long long row = k * stretch / STRETCHES + warp; row < k * (stretch + 1) / STRETCHES;
       row += 8) {
    const float4 four = load_four<B_ALIGNED>(b + row * n + column, n - column);
    const float each[4] = {four.x, four.y, four.z, four.w};
    UNROLLED for (int i = 0; i < 4; ++i)
        largest[i] = max(largest[i], __float_as_uint(each[i]) & 0x7fffffffu);
  }
  UNROLLED for (int i = 0; i < 4; ++i) found[warp][lane * 4 + i] = largest[i];
  __syncthreads();
  if (threadIdx.x >= 128 || first + threadIdx.x >= n) return;
  unsigned all = 0;
  for (int i = 0; i < 8; ++i) all = max(all, found[i][threadIdx.x]);
  columns[stretch * n + first + threadIdx.x] = all;
}

/// First step, where planes need scales: magnitudes of rows and columns. Blocks of eight rows of a,
/// then blocks of 128 columns of b, or of eight.
extern "C" __global__ void __launch_bounds__(256)
    measure(const float* __restrict__ a, const float* __restrict__ b, unsigned* __restrict__ rows,
            unsigned* __restrict__ columns, long long m, long long n, long long k) {
  const long long row_blocks = (m + 7) / 8, at = blockIdx.x - row_blocks;
  if (blockIdx.y > 0 && !(at < 0 ? A_BATCHED : B_BATCHED)) return;
  a = of_batch(a, A_BATCHED, m * k), rows = of_batch(rows, A_BATCHED, m);
  b = of_batch(b, B_BATCHED, n * k), columns = of_batch(columns, B_BATCHED, STRETCHES * n);
  if (at < 0) return measure_row<A_ALIGNED>(a, rows, blockIdx.x * 8ll + threadIdx.x / 32, m, k);
  if (B_TRANSPOSED) return measure_row<B_ALIGNED>(b, columns, at * 8 + threadIdx.x / 32, n, k);
  measure_columns(b, columns, at / STRETCHES * 128, (int)(at % STRETCHES), n, k);
}

/// s for each line of a band of LINES rows or columns; `scales` keeps them for those who scale the
/// results back.
DEVICE void find_scales(int (&found)[LINES], const unsigned* largest, int stretches, int* scales,
                        long long first_line, long long lines, bool keep) {
  if (threadIdx.x < LINES) {
    const long long line = first_line + threadIdx.x;
    unsigned all = 0;
    if (line < lines)
      for (int i = 0; i < stretches; ++i) all = max(all, largest[i * lines + line]);
    found[threadIdx.x] = all == 0 ? 0 : TOP_EXPONENT - exponent_of(all);
    if (keep && line < lines) scales[line] = found[threadIdx.x];
  }
  __syncthreads();
}

/// The remainder of x and y behind two elements of a plane.
DEVICE void take_off(unsigned pair, float& x, float& y) {
  float taken_x, taken_y;
  if (PLANES == 3) {  // a bfloat16 is the upper half of a float
    taken_x = __uint_as_float(pair << 16);
    taken_y = __uint_as_float(pair & 0xffff0000u);
  } else {
    asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %2;\ncvt.f32.f16 %0, l;\ncvt.f32.f16 %1, h;\n}"
        : "=f"(taken_x), "=f"(taken_y)
        : "r"(pair));
  }
  x = (x - taken_x) * (1 << LOW_SHIFT);
  y = (y - taken_y) * (1 << LOW_SHIFT);
}

/// The offset of a thread's eight neighbours of a chunk in every plane: unit `unit` of a row of the
/// chunk.
template <bool DOWN>
DEVICE int unit_at(int row, int unit) {
  return DOWN ? row * 128 + (unit ^ (row & 7)) * 16 : row * 64 + (unit ^ (row >> 1 & 3)) * 16;
}

/// Splits a group of chunks along k of a band of LINES rows of a, or columns of b (`DOWN`), times
/// the powers of two of its lines.
template <bool DOWN, bool ALIGNED>
DEVICE void split_band(const float* matrix, unsigned char* planes, Extent* extents, long long band,
                       int group, long long lines, long long k, const int (&scales)[LINES]) {
  __shared__ Extent found[8];
  constexpr int UNITS = (DOWN ? LINES : DEPTH) / 8;
  const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
  const int chunks = chunks_along(k), first = group * CHUNKS_PER_GROUP;
  const long long height = DOWN ? k : lines, width = DOWN ? lines : k;
  Extent extent = {0, 0};
#pragma unroll 2
  for (int chunk = first; chunk < min(first + CHUNKS_PER_GROUP, chunks); ++chunk) {
    const long long y = (DOWN ? chunk * DEPTH : band * LINES) + row,
                    x = (DOWN ? band * LINES : chunk * DEPTH) + unit * 8;
    const float4 left = load_four<ALIGNED>(matrix + y * width + x, y < height ? width - x : 0);
    const float4 right = load_four<ALIGNED>(matrix + y * width + x + 4,
                                            y < height ? width - x - 4 : 0);
    float eight[8] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
    UNROLLED for (int i = 0; i < 8; ++i) {
      // lines of denormal numbers need a power of two beyond the largest float: it comes in two
      // factors
      if (SCALED) {
        const int scale = scales[DOWN ? unit * 8 + i : row];
        eight[i] = eight[i] * power_of_two(min(scale, 100)) * power_of_two(max(scale - 100, 0));
      }
      extend(extent, eight[i]);
    }
    unsigned char* to = planes + (band * chunks + chunk) * CHUNK_BYTES + unit_at<DOWN>(row, unit);
    UNROLLED for (int plane = 0; plane < PLANES; ++plane) {
      unsigned pairs[4];
      UNROLLED for (int i = 0; i < 4; ++i) {
        pairs[i] = pack(eight[2 * i], eight[2 * i + 1]);
        if (plane + 1 < PLANES) take_off(pairs[i], eight[2 * i], eight[2 * i + 1]);
      }
      *(uint4*)(to + plane * PLANE_BYTES) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
  }
  extend_over_warp(extent);
  if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = extent;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < 8; ++i) extend(extent, found[i]);
  extents[band * groups_along(k) + group] = extent;
}

/// First step. Blocks of a, then blocks of b: for each band of rows or columns as many as there are
/// groups along k.
extern "C" __global__ void __launch_bounds__(256)
    split(const float* __restrict__ a, const float* __restrict__ b,
          unsigned char* __restrict__ a_planes, unsigned char* __restrict__ b_planes,
          Extent* __restrict__ a_extents, Extent* __restrict__ b_extents,
          const unsigned* __restrict__ rows, const unsigned* __restrict__ columns,
          int* __restrict__ row_scales, int* __restrict__ column_scales, long long m, long long n,
          long long k) {
  __shared__ int scales[LINES];
  const long long a_bands = bands_of(m, TILE_M), b_bands = bands_of(n, TILE_N);
  const int groups = groups_along(k), group = (int)(blockIdx.x % groups);
  const long long at = blockIdx.x / groups, band = at < a_bands ? at : at - a_bands,
                  chunks = chunks_along(k);
  if (blockIdx.y > 0 && !(at < a_bands ? A_BATCHED : B_BATCHED)) return;
  a = of_batch(a, A_BATCHED, m * k),
  a_planes = of_batch(a_planes, A_BATCHED, a_bands * chunks * CHUNK_BYTES);
  b = of_batch(b, B_BATCHED, n * k),
  b_planes = of_batch(b_planes, B_BATCHED, b_bands * chunks * CHUNK_BYTES);
  a_extents = of_batch(a_extents, A_BATCHED, a_bands * groups),
  b_extents = of_batch(b_extents, B_BATCHED, b_bands * groups);
  if (SCALED && at < a_bands)
    find_scales(scales, of_batch(rows, A_BATCHED, m), 1, of_batch(row_scales, A_BATCHED, m),
                band * LINES, m, group == 0);
  else if (SCALED)
    find_scales(scales, of_batch(columns, B_BATCHED, STRETCHES * n), STRETCHES,
                of_batch(column_scales, B_BATCHED, n), band * LINES, n, group == 0);
  if (at < a_bands)
    split_band<false, A_ALIGNED>(a, a_planes, a_extents, band, group, m, k, scales);
  else
    split_band<!B_TRANSPOSED, B_ALIGNED>(b, b_planes, b_extents, band, group, n, k, scales);
}
