// First step of a convolution: writes images and filters with their channels last, each group
// padded with zeros to whole units, and images with zeros around them. The first blocks transpose
// tiles of images, the last gather filters. Float32 is scaled to float16 by powers of two that a
// sample decides. With FLOAT_PARTS = 3 it is split into high + low, and each product has its
// channels: high, low, high of images meet high, high, low of filters. With FLOAT_PARTS = 2 high,
// high of images meet high, low of filters.
constexpr int TOTAL = GROUPS * STORED;  // channels of an arranged pixel
// The products that take low parts of images and of filters; 0: there are none.
constexpr int LOW_OF_X = FLOAT_PARTS == 3 ? 1 : 0, LOW_OF_W = FLOAT_PARTS - 1;
constexpr int TILE_C = TOTAL < 64 ? TOTAL : 64;
constexpr int TILE_S = TILE_C > 16 ? 128 : TILE_C > 8 ? 256 : 512;
// pixels of a position; pixels of an image with the zeros around it
constexpr int SPLIT = SPLIT_D * SPLIT_H * SPLIT_W, CELLS = POSITIONS * SPLIT;
constexpr int TILES_S = (SPACE + TILE_S - 1) / TILE_S, TILES_C = (TOTAL + TILE_C - 1) / TILE_C;

/// A finite number rounded to the 11 bits of TF32, halves away from zero, as cvt.rna.tf32 and with
/// it cuDNN do: results are those of a convolution in TF32 but for the order of additions.
DEVICE float as_tf32(float x) {
  return __uint_as_float((__float_as_uint(x) + 0x1000) & 0xffffe000);
}

/// The operand for an element, or the part of it that its high part leaves; `seen` becomes the
/// largest finite magnitude so far.
DEVICE Operand scaled(T x, int shift, float& seen, bool low = false) {
  if (!SCALED) return Operand(x);
  const float given = x;
  const bool finite = fabsf(given) < __int_as_float(0x7f800000);
  if (finite) seen = fmaxf(seen, fabsf(given));
  const float all = shifted(given, shift);
  if (FLOAT_PARTS == 1) return Operand(finite ? as_tf32(all) : all);
  const Operand high = Operand(all);
  if (!low) return high;
  return Operand(finite ? all - float(high) : 0.0f);
}

typedef Units<T, X_STEP> Given;
typedef Units<Operand, UNIT> Arranged;

/// The index of an element of the image among the pixels of all positions.
DEVICE int cell_of(int s) {
  const int d = s / (IN_H * IN_W) + LOW_D, h = s / IN_W % IN_H + LOW_H, w = s % IN_W + LOW_W;
  const int position = (d / SPLIT_D * PADDED_H + h / SPLIT_H) * PADDED_W + w / SPLIT_W;
  return position * SPLIT + (d % SPLIT_D * SPLIT_H + h % SPLIT_H) * SPLIT_W + w % SPLIT_W;
}
/// Clears pixels without an element.
DEVICE void clear_cell(Operand* to, unsigned cell, unsigned cells) {
  const unsigned position = cell / SPLIT, pixel = cell % SPLIT;
  const unsigned d = position / (PADDED_H * PADDED_W) % PADDED_D * SPLIT_D +
                     pixel / (SPLIT_H * SPLIT_W) - LOW_D;
  const unsigned h = position / PADDED_W % PADDED_H * SPLIT_H + pixel / SPLIT_W % SPLIT_H - LOW_H,
                 w = position % PADDED_W * SPLIT_W + pixel % SPLIT_W - LOW_W;
  if (cell >= cells || (d < IN_D && h < IN_H && w < IN_W)) return;
  for (int c = 0; c < TOTAL; c += UNIT)
    *(uint4*)(to + (long long)cell * TOTAL + c) = make_uint4(0, 0, 0, 0);
}

DEVICE void arrange_tile(const T* __restrict__ x, Operand* __restrict__ to, unsigned tile,
                         long long image, int shift, float& seen) {
  typedef Units<Operand, 2> Pair;
  __shared__ Pair pairs[TILE_S][TILE_C / 2 + 1];  // of channels
  const int s0 = tile % TILES_S * TILE_S, c0 = tile / TILES_S * TILE_C;
#pragma unroll 2
  for (int i = threadIdx.x; i < TILE_C / 2 * TILE_S / UNIT; i += 256) {
    const int pair = i / (TILE_S / UNIT), s = s0 + i % (TILE_S / UNIT) * UNIT;
    Given given[2][UNIT / X_STEP];
    UNROLLED for (int p = 0; p < 2; ++p) {
      const int all = c0 + pair * 2 + p, part_channel = all % STORED,
                channel = FLOAT_PARTS == 1 ? part_channel : part_channel % CHANNELS;
      const T* from = x + image * X_FROM_IMAGE + all / STORED * X_FROM_GROUP +
                      channel * X_FROM_CHANNEL + s * X_FROM_PIXEL;
      UNROLLED for (int e = 0; e < UNIT; e += X_STEP)
          given[p][e / X_STEP] = all < TOTAL && part_channel < FLOAT_PARTS * CHANNELS &&
                                         s + e < SPACE
                                     ? *(const Given*)(from + e * X_FROM_PIXEL)
                                     : Given{};
    }
    const int first = (c0 + pair * 2) % STORED;
    const bool low[2] = {LOW_OF_X > 0 && first / CHANNELS == LOW_OF_X,
                         LOW_OF_X > 0 && (first + 1) / CHANNELS == LOW_OF_X};
    UNROLLED for (int e = 0; e < UNIT; ++e) {
      pairs[s - s0 + e][pair] = {
          scaled(given[0][e / X_STEP].element[e % X_STEP], shift, seen, low[0]),
          scaled(given[1][e / X_STEP].element[e % X_STEP], shift, seen, low[1])};
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < TILE_C * TILE_S / UNIT; i += 256) {
    const int c = i % (TILE_C / UNIT) * UNIT, s = i / (TILE_C / UNIT);
    Units<Pair, UNIT / 2> unit;
    UNROLLED for (int p = 0; p < UNIT / 2; ++p) unit.element[p] = pairs[s][c / 2 + p];
    if (s0 + s < SPACE && c0 + c < TOTAL)
      *(Units<Pair, UNIT / 2>*)(to + (image * CELLS + cell_of(s0 + s)) * TOTAL + c0 + c) = unit;
  }
}

/// The tap of the filter that is tap number t of a phase of the result.
template <int PHASES>
DEVICE int tap_of(int t, int phase) {
  return t * PHASES + PHASES - 1 - phase % PHASES;
}

/// Writes unit number `at` of the filters: units of the same channels and of all taps follow each
/// other. Each phase of a filter is a row: phases of a filter are neighbours or, where filters are
/// neighbours in the result, filters of a phase. Where pixels are merged, phase r of a position
/// meets the filter's tap s at pixel r + s; the same holds for rows.
DEVICE void arrange_filter(const T* __restrict__ w, Operand* __restrict__ to, unsigned at,
                           int shift, float& seen) {
  constexpr int TAPS = TAPS_D * TAPS_H * TAPS_W;
  constexpr int UNITS = MERGED * C / UNIT;
  const int tap = at % TAPS, unit_c = at / TAPS % UNITS * UNIT, c = unit_c % C;
  constexpr int PHASE_FILTERS = FILTERS / ROW_PHASES;
  const long long row = at / (TAPS * UNITS),  // of all groups, as is the filter
      filter = PIXELS_FIRST ? row / FILTERS * PHASE_FILTERS + row % PHASE_FILTERS
                            : row / ROW_PHASES;
  if (row >= GROUPS * FILTERS) return;
  const int phase = (int)(PIXELS_FIRST ? row % FILTERS / PHASE_FILTERS : row % ROW_PHASES);
  const int d = tap_of<PHASES_D>(tap / (TAPS_H * TAPS_W), phase / (PHASES_H * PHASES_W)),
            at_h = tap / TAPS_W % TAPS_H;
  const int h = PAIR > 1 ? at_h - phase / PHASES_W % PAIR
                         : tap_of<PHASES_H>(at_h, phase / PHASES_W);
  const int s = MERGED > 1 ? tap % TAPS_W * MERGED + unit_c / C - phase % PHASES_W
                           : tap_of<PHASES_W>(tap % TAPS_W, phase);
  const bool there = d < FILTER_D && (unsigned)h < FILTER_H && (unsigned)s < FILTER_W;
  const T* from = w + W_BASE + filter / OWN_FILTERS * W_GROUP + filter % OWN_FILTERS * W_FILTER +
                  d * W_D + h * W_H + s * W_W;
  Arranged unit;
  // Filters do not see the channels of other groups that were put into their group.
  UNROLLED for (int e = 0; e < UNIT; ++e) {
    const int channel = FLOAT_PARTS == 1 ? c + e : (c + e) % CHANNELS;
    const bool own = there && c + e < FLOAT_PARTS * CHANNELS &&
                     channel / OWN_CHANNELS == filter % PHASE_FILTERS / OWN_FILTERS;
    unit.element[e] = own ? scaled(from[(long long)(channel % OWN_CHANNELS) * W_CHANNEL], shift,
                                   seen, LOW_OF_W > 0 && (c + e) / CHANNELS == LOW_OF_W)
                          : Operand(0.0f);
  }
  *(Arranged*)(to + (row * TAPS + tap) * (MERGED * C) + unit_c) = unit;
}

DEVICE void arrange_block(unsigned block, const T* __restrict__ x, Operand* __restrict__ to_x,
                          const T* __restrict__ w, Operand* __restrict__ to_w, int images,
                          unsigned* __restrict__ largest, bool again) {
  constexpr unsigned BLOCKS = TILES_S * TILES_C;  // of an image
  const unsigned of_images = ARRANGE_X ? (unsigned)images * BLOCKS : 0,
                 cells = ARRANGE_X && CELLS > SPACE ? (unsigned)images * CELLS : 0;
  const unsigned cleared = of_images + (cells + 255) / 256;
  if (block >= of_images && block < cleared)
    return clear_cell(to_x, (block - of_images) * 256 + threadIdx.x, cells);
  const bool of_x = block < of_images;
  if (again && largest[LARGEST + !of_x] == 0) return;
  const int shift = !SCALED ? 0 : again ? final_shift(largest, of_x) : sampled_shift(largest, of_x);
  float seen = 0;
  if (!of_x) {
    arrange_filter(w, to_w, (block - cleared) * 256 + threadIdx.x, shift, seen);
  } else {
    arrange_tile(x, to_x, block % BLOCKS, block / BLOCKS, shift, seen);
  }
  if (SCALED && !again && shifted(seen, shift) >= 32768)
    atomicMax(largest + LARGEST + !of_x, __float_as_uint(seen));
}

#ifndef ARRANGED_APART  // wgrad arranges two tensors by a kernel of its own
extern "C" __global__ void __launch_bounds__(256)
    arrange(const T* __restrict__ x, Operand* __restrict__ to_x, const T* __restrict__ w,
            Operand* __restrict__ to_w, int images, unsigned* __restrict__ largest) {
  arrange_block(blockIdx.x, x, to_x, w, to_w, images, largest, false);
}
#endif

#if SCALED
/// Before the first step: the largest finite magnitudes of samples of x and of w, as the bits of
/// floats.
extern "C" __global__ void __launch_bounds__(512)
    sample(const float* __restrict__ x, const float* __restrict__ w, unsigned* __restrict__ largest,
           long long of_x, long long of_w) {
  __shared__ unsigned parts[16];
  const bool is_x = blockIdx.x < SAMPLED_X;
  const long long block = is_x ? blockIdx.x : blockIdx.x - SAMPLED_X,
                  blocks = is_x ? SAMPLED_X : SAMPLED_W, quads = (is_x ? of_x : of_w) / 4;
  const float4* const from = (const float4*)(is_x ? x : w) + quads * block / blocks;
  const int count = (int)min(quads * (block + 1) / blocks - quads * block / blocks, 2048ll);
  float found = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < count; i += 512) {
    const float4 four = from[i];
    scaled(four.x, 0, found), scaled(four.y, 0, found), scaled(four.z, 0, found),
        scaled(four.w, 0, found);
  }
  const unsigned bits = __reduce_max_sync(~0u, __float_as_uint(found));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = bits;
  if (blockIdx.x == 0 && threadIdx.x < 2) largest[LARGEST + threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  const unsigned all = __reduce_max_sync(~0u, threadIdx.x < 16 ? parts[threadIdx.x] : 0);
  if (threadIdx.x == 0) largest[blockIdx.x] = all;
}

/// After the first step: arranges again the tensors whose elements exceeded the sampled scale.
extern "C" __global__ void __launch_bounds__(256)
    arrange_again(const T* __restrict__ x, Operand* __restrict__ to_x, const T* __restrict__ w,
                  Operand* __restrict__ to_w, int images, unsigned* __restrict__ largest,
                  unsigned blocks) {
  if (largest[LARGEST] == 0 && largest[LARGEST + 1] == 0) return;
  for (unsigned block = blockIdx.x; block < blocks; block += gridDim.x) {
    arrange_block(block, x, to_x, w, to_w, images, largest, true);
    __syncthreads();
  }
}
#endif
