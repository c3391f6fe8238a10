// First step of a convolution: images and filters with their channels last, of each group a whole number of units, zeros in what
// fills them up. Blocks before X_BLOCKS · images turn tiles of images, the others gather filters.
constexpr int TOTAL = GROUPS * C;  // channels of an arranged pixel
constexpr int TILE_C = TOTAL < 64 ? TOTAL : 64;
constexpr int TILE_S = TILE_C > 32 ? 64 : TILE_C > 16 ? 128 : TILE_C > 8 ? 256 : 512;
constexpr int SPACE = IN_D * IN_H * IN_W;
constexpr int TILES_S = (SPACE + TILE_S - 1) / TILE_S, TILES_C = (TOTAL + TILE_C - 1) / TILE_C;

/// What the products read: TF32 is rounded here, since tensor cores cut off.
DEVICE float rounded(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}
template <class A> DEVICE A rounded(A x) { return x; }

struct alignas(16) Unit {
  T element[UNIT];
};

DEVICE void arrange_tile(const T* __restrict__ x, T* __restrict__ to, unsigned tile, long long image) {
  __shared__ T lines[TILE_C][TILE_S + 4 / sizeof(T)];
  const int s0 = tile % TILES_S * TILE_S, c0 = tile / TILES_S * TILE_C;
  for (int i = threadIdx.x; i < TILE_C * TILE_S / UNIT; i += 256) {
    const int line = i / (TILE_S / UNIT), s = s0 + i % (TILE_S / UNIT) * UNIT, channel = (c0 + line) % C;
    const T* from = x + image * X_FROM_IMAGE + (c0 + line) / C * X_FROM_GROUP + channel * X_FROM_CHANNEL + s;
    const bool exists = c0 + line < TOTAL && channel < CHANNELS;
    Unit unit = {};
    if (X_WHOLE) {
      if (exists && s < SPACE) *(uint4*)&unit = *(const uint4*)from;
    } else {
#pragma unroll
      for (int e = 0; e < UNIT; ++e) {
        if (exists && s + e < SPACE) unit.element[e] = from[e];
      }
    }
#pragma unroll
    for (int e = 0; e < UNIT; ++e) lines[line][s - s0 + e] = unit.element[e];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < TILE_C * TILE_S / UNIT; i += 256) {
    const int c = i % (TILE_C / UNIT) * UNIT, s = i / (TILE_C / UNIT);
    if (s0 + s >= SPACE || c0 + c >= TOTAL) continue;
    Unit unit;
#pragma unroll
    for (int e = 0; e < UNIT; ++e) unit.element[e] = rounded(lines[c + e][s]);
    *(Unit*)(to + (image * SPACE + s0 + s) * TOTAL + c0 + c) = unit;
  }
}

/// Unit number `at`: those of the taps of a filter and of the same channels come one after the other.
DEVICE void arrange_filter(const T* __restrict__ w, T* __restrict__ to, unsigned at) {
  constexpr int TAPS = TAPS_D * TAPS_H * TAPS_W;
  const int tap = at % TAPS, c = at / TAPS % (C / UNIT) * UNIT;
  const long long filter = at / (TAPS * (C / UNIT));  // of all groups
  if (filter >= GROUPS * FILTERS) return;
  const T* from = w + W_BASE + filter / FILTERS * W_GROUP + filter % FILTERS * W_FILTER + tap / (TAPS_H * TAPS_W) * W_D + tap / TAPS_W % TAPS_H * W_H +
                  tap % TAPS_W * W_W;
  Unit unit;
#pragma unroll
  for (int e = 0; e < UNIT; ++e) unit.element[e] = c + e < CHANNELS ? rounded(from[(long long)(c + e) * W_CHANNEL]) : T(0.0f);
  *(Unit*)(to + (filter * TAPS + tap) * C + c) = unit;
}

extern "C" __global__ void __launch_bounds__(256) arrange(const T* __restrict__ x, T* __restrict__ to_x, const T* __restrict__ w, T* __restrict__ to_w, int images) {
  const unsigned of_images = ARRANGE_X ? (unsigned)images * TILES_S * TILES_C : 0;
  if (blockIdx.x < of_images) return arrange_tile(x, to_x, blockIdx.x % (TILES_S * TILES_C), blockIdx.x / (TILES_S * TILES_C));
  arrange_filter(w, to_w, (blockIdx.x - of_images) * 256 + threadIdx.x);
}
