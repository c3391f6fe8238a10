// Operands in float32 as sums of planes of a 16-bit type. With one power of two 2^s for a row of a, and one for a column of b,
// which brings the largest element of it into [2^14, 2^15),
//   PLANES = 3, bfloat16:  x · 2^s = p0 + p1 + p2            all 24 bits
//   PLANES = 2, float16:   x · 2^s = p0 + p1 · 2^-12         23 bits
//   PLANES = 1, float16:   x · 2^s = p0                      11 bits, as TF32 has
// each plane being what the ones before left over, rounded to nearest. That holds for elements down to 2^-FULL_RANGE of the
// largest; smaller ones lose their last bits. Rows that hold such elements are marked WIDE, those that hold infinities or NaNs
// ODD: what comes of them is looked at again (gemm_planes.cu).
//
// Planes are stored as tensor cores read them from shared memory: in chunks of LINES rows of a, or columns of b, by DEPTH along
// k, one plane's bytes after the other's. Rows of a chunk of a are 64 bytes, along k, swizzled among 64; those of b run along n
// and are 128 bytes, swizzled among 128. Chunks follow each other along k, then along m or n.
#define DEVICE __device__ __forceinline__

constexpr int LINES = 64, DEPTH = 32;
constexpr int PLANE_BYTES = LINES * DEPTH * 2;
constexpr int CHUNK_BYTES = PLANES * PLANE_BYTES;
/// Chunks of zeros fill the last of those that are summed at once.
DEVICE long long chunks_along(long long k) { return (k + DEPTH * PROMOTE - 1) / (DEPTH * PROMOTE) * PROMOTE; }
constexpr int LOW_SHIFT = PLANES == 2 ? 12 : 0;
constexpr int TOP_EXPONENT = 14;
constexpr int FULL_RANGE = PLANES == 3 ? 100 : 27;
constexpr int STRETCHES = 16;        // of the rows of b, which are measured side by side
constexpr int CHUNKS_PER_BLOCK = 8;  // that a block splits, along k

/// Magnitudes in a row or column, as the bits of floats, which are ordered as their values are. `least` is that of all but
/// zeros, less 1: a zero's then counts as the largest there is.
struct Extent {
  unsigned largest, least;
};
DEVICE void extend(Extent& extent, unsigned largest, unsigned least) {
  extent.largest = max(extent.largest, largest);
  extent.least = min(extent.least, least);
}
DEVICE void extend(Extent& extent, float value) {
  const unsigned bits = __float_as_uint(value) & 0x7fffffffu;
  extend(extent, bits, bits - 1);
}

/// Of magnitudes from their bits; denormal ones too.
DEVICE int exponent_of(unsigned bits) { return bits >= 0x00800000u ? (int)(bits >> 23) - 127 : -118 - __clz(bits); }

/// A row's s, with its marks in the two lowest bits.
constexpr int WIDE = 1, ODD = 2;
DEVICE int scale_of(const Extent& extent) {
  if (extent.largest == 0) return 0;
  const int top = exponent_of(extent.largest);
  const bool wide = extent.least != 0xffffffffu && exponent_of(extent.least + 1) < top - FULL_RANGE;
  return (TOP_EXPONENT - top) * 4 + (wide ? WIDE : 0) + (extent.largest >= 0x7f800000u ? ODD : 0);
}
DEVICE int shift_of(int scale) { return scale >> 2; }
DEVICE float power_of_two(int exponent) { return __int_as_float((exponent + 127) << 23); }

/// `count` of four neighbours, zeros for the others. Aligned ones exist all or none.
template <bool ALIGNED>
DEVICE float4 load_four(const float* from, long long count) {
  if (ALIGNED) return count > 0 ? *(const float4*)from : make_float4(0, 0, 0, 0);
  return make_float4(count > 0 ? from[0] : 0.0f, count > 1 ? from[1] : 0.0f, count > 2 ? from[2] : 0.0f, count > 3 ? from[3] : 0.0f);
}

/// A row of a by each warp.
DEVICE void measure_row(const float* a, Extent* extents, long long row, long long m, long long k) {
  if (row >= m) return;
  Extent extent = {0, 0xffffffffu};
#pragma unroll 4
  for (long long at = threadIdx.x % 32 * 4; at < k; at += 128) {
    const float4 four = load_four<A_ALIGNED>(a + row * k + at, k - at);
    extend(extent, four.x);
    extend(extent, four.y);
    extend(extent, four.z);
    extend(extent, four.w);
  }
#pragma unroll
  for (int lane = 16; lane > 0; lane /= 2)
    extend(extent, __shfl_xor_sync(~0u, extent.largest, lane), __shfl_xor_sync(~0u, extent.least, lane));
  if (threadIdx.x % 32 == 0) extents[row] = extent;
}

/// 128 columns of b, one of STRETCHES parts of their rows: every warp takes each eighth row.
DEVICE void measure_columns(const float* b, Extent* extents, long long first, int stretch, long long n, long long k) {
  __shared__ Extent found[8][128];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long column = first + lane * 4;
  Extent mine[4] = {{0, 0xffffffffu}, {0, 0xffffffffu}, {0, 0xffffffffu}, {0, 0xffffffffu}};
#pragma unroll 4
  for (long long row = k * stretch / STRETCHES + warp; row < k * (stretch + 1) / STRETCHES; row += 8) {
    const float4 four = load_four<B_ALIGNED>(b + row * n + column, n - column);
    extend(mine[0], four.x);
    extend(mine[1], four.y);
    extend(mine[2], four.z);
    extend(mine[3], four.w);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) found[warp][lane * 4 + i] = mine[i];
  __syncthreads();
  if (threadIdx.x >= 128 || first + threadIdx.x >= n) return;
  Extent extent = found[0][threadIdx.x];
  for (int i = 1; i < 8; ++i) extend(extent, found[i][threadIdx.x].largest, found[i][threadIdx.x].least);
  extents[stretch * n + first + threadIdx.x] = extent;
}

/// First step. Blocks of eight rows of a, then blocks of 128 columns of b.
extern "C" __global__ void __launch_bounds__(256) measure(const float* __restrict__ a, const float* __restrict__ b, Extent* __restrict__ rows,
                                                         Extent* __restrict__ columns, long long m, long long n, long long k) {
  const long long row_blocks = (m + 7) / 8;
  if (blockIdx.x < row_blocks) return measure_row(a, rows, blockIdx.x * 8ll + threadIdx.x / 32, m, k);
  const long long at = blockIdx.x - row_blocks;
  measure_columns(b, columns, at / STRETCHES * 128, (int)(at % STRETCHES), n, k);
}

/// Two elements of a plane, the first in the low half.
DEVICE unsigned round_pair(float x, float y) {
  unsigned pair;
  asm("cvt.rn." MMA_TYPE "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
  return pair;
}
/// What they left over of x and y.
DEVICE void take_off(unsigned pair, float& x, float& y) {
  float taken_x, taken_y;
  if (PLANES == 3) {  // a bfloat16 is the upper half of a float
    taken_x = __uint_as_float(pair << 16);
    taken_y = __uint_as_float(pair & 0xffff0000u);
  } else {
    asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %2;\ncvt.f32.f16 %0, l;\ncvt.f32.f16 %1, h;\n}" : "=f"(taken_x), "=f"(taken_y) : "r"(pair));
  }
  x = (x - taken_x) * (1 << LOW_SHIFT);
  y = (y - taken_y) * (1 << LOW_SHIFT);
}

/// Where a thread's eight neighbours of a chunk go in every plane: unit `unit` of a row of the chunk.
template <bool DOWN>
DEVICE int unit_at(int row, int unit) {
  return DOWN ? row * 128 + (unit ^ (row & 7)) * 16 : row * 64 + (unit ^ (row >> 1 & 3)) * 16;
}

/// The scales of a band of LINES rows or columns, also for those who scale the results back.
DEVICE void find_scales(int (&found)[LINES], const Extent* extents, int stretches, int* scales, long long first_line, long long lines, bool write) {
  if (threadIdx.x < LINES) {
    const long long line = first_line + threadIdx.x;
    Extent extent = {0, 0xffffffffu};
    if (line < lines)
      for (int i = 0; i < stretches; ++i) extend(extent, extents[i * lines + line].largest, extents[i * lines + line].least);
    found[threadIdx.x] = scale_of(extent);
    if (write && line < lines) scales[line] = found[threadIdx.x];
  }
  __syncthreads();
}

/// Of a band of LINES rows of a, or columns of b (`DOWN`), CHUNKS_PER_BLOCK chunks along k.
template <bool DOWN, bool ALIGNED>
DEVICE void split_band(const float* matrix, const Extent* extents, int* scales, unsigned char* planes, long long band, long long first_chunk,
                       long long lines, long long k) {
  __shared__ int found[LINES];
  constexpr int UNITS = (DOWN ? LINES : DEPTH) / 8;
  const long long chunks = chunks_along(k), first_line = band * LINES;
  find_scales(found, extents, DOWN ? STRETCHES : 1, scales, first_line, lines, first_chunk == 0);
  const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
  float factor[8], second_factor[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    // A column of denormal numbers needs a power of two beyond the largest float: it comes in two factors.
    const int shift = shift_of(found[DOWN ? unit * 8 + i : row]);
    factor[i] = power_of_two(min(shift, 100));
    second_factor[i] = power_of_two(max(shift - 100, 0));
  }
  const long long height = DOWN ? k : lines, width = DOWN ? lines : k;
#pragma unroll 2
  for (long long chunk = first_chunk; chunk < min(first_chunk + CHUNKS_PER_BLOCK, chunks); ++chunk) {
    const long long y = (DOWN ? chunk * DEPTH : first_line) + row, x = (DOWN ? first_line : chunk * DEPTH) + unit * 8;
    const float4 left = load_four<ALIGNED>(matrix + y * width + x, y < height ? width - x : 0);
    const float4 right = load_four<ALIGNED>(matrix + y * width + x + 4, y < height ? width - x - 4 : 0);
    float eight[8] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) eight[i] = eight[i] * factor[i] * second_factor[i];
    unsigned char* to = planes + (band * chunks + chunk) * CHUNK_BYTES + unit_at<DOWN>(row, unit);
#pragma unroll
    for (int plane = 0; plane < PLANES; ++plane) {
      unsigned pairs[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        pairs[i] = round_pair(eight[2 * i], eight[2 * i + 1]);
        if (plane + 1 < PLANES) take_off(pairs[i], eight[2 * i], eight[2 * i + 1]);
      }
      *(uint4*)(to + plane * PLANE_BYTES) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
  }
}

/// Second step. Blocks of a, then blocks of b: for each band of rows or columns as many as it takes along k.
extern "C" __global__ void __launch_bounds__(256)
    split(const float* __restrict__ a, const float* __restrict__ b, const Extent* __restrict__ rows, const Extent* __restrict__ columns,
          int* __restrict__ row_scales, int* __restrict__ column_scales, unsigned char* __restrict__ a_planes,
          unsigned char* __restrict__ b_planes, long long m, long long n, long long k) {
  const long long per_band = (chunks_along(k) + CHUNKS_PER_BLOCK - 1) / CHUNKS_PER_BLOCK;
  const long long a_bands = (m + TILE_M - 1) / TILE_M * (TILE_M / LINES);
  const long long band = blockIdx.x / per_band, chunk = blockIdx.x % per_band * CHUNKS_PER_BLOCK;
  if (band < a_bands) return split_band<false, A_ALIGNED>(a, rows, row_scales, a_planes, band, chunk, m, k);
  split_band<true, B_ALIGNED>(b, columns, column_scales, b_planes, band - a_bands, chunk, n, k);
}
