// Gradient of a convolution by its filter (wgrad) on Hopper: dw[filter, tap, channel] = Σ over the
// positions p of all images of dy[p, filter]ᵀ · x[p + tap, channel]. Both x and dy have the same
// positions, with zeros around images or where there is no result, so that a tap is a constant
// distance between positions (see conv_implicit_gemm.cu). One thread copies DEPTH positions of dy,
// and the segment of x that a row of taps reads; tensor cores read the segment from each tap's
// offset, with neighbouring taps as columns of one product. Blocks divide the positions (split-K);
// a second step adds the partial sums. DIRECT: with 1 x 1 filters both tensors are read in their
// native layout.
using namespace of_x;
constexpr int TAPS = OUT_D * OUT_H * OUT_W;
/// Taps along a row are ALONG positions apart; each of a position's pixels has a row of its own.
constexpr int ALONG = SPLIT_W > 1 ? 1 : DILATION_W, SEEN = (OUT_W + SPLIT_W - 1) / SPLIT_W,
              PARTS = (SEEN + TAP_PANELS - 1) / TAP_PANELS;
constexpr int ROWS_H = GROUPS_R > 1 ? 1 : OUT_H, PIXELS_W = SPLIT_W < OUT_W ? SPLIT_W : OUT_W;
constexpr int DOWN = GROUPS_R > 1 ? DILATION_H* PADDED_W : 0;
constexpr int PANELS = TAP_PANELS * CHANNEL_PANELS, TILE_N = PANELS * 64;
constexpr int TILE_F = GROUPS_M * 64, BLOCK_C = GROUPS_C * CHANNEL_PANELS * 64;
constexpr int X_ROWS = DEPTH + (TAP_PANELS - 1) * ALONG + (GROUPS_R - 1) * DOWN,
              BOXES = (X_ROWS + 255) / 256;
constexpr int BOX_ROWS = ((X_ROWS + BOXES - 1) / BOXES + 7) / 8 * 8;
constexpr int DY_BYTES = DEPTH * 128, X_BYTES = BOXES * BOX_ROWS * 128, X_AT = GROUPS_M * DY_BYTES;
constexpr int BARRIERS = STAGES * STAGE_BYTES;
typedef Ring<STAGES, STAGE_BYTES> Buffers;
constexpr int CONSUMERS = GROUPS_M * GROUPS_C * GROUPS_R * 128, THREADS = CONSUMERS + 32;
static_assert(X_AT + GROUPS_C * CHANNEL_PANELS * X_BYTES == STAGE_BYTES,
              "must equal the size that the host allocates");

/// A block's filters, channels and row of taps; the offset and pixel of its first tap.
struct Work {
  int filter, channel, d, h, w;
  DEVICE Work() {
    constexpr unsigned FILTER_TILES = (FILTERS + TILE_F - 1) / TILE_F,
                       CHANNEL_TILES = (C + BLOCK_C - 1) / BLOCK_C;
    filter = blockIdx.x % FILTER_TILES * TILE_F;
    channel = blockIdx.x / FILTER_TILES % CHANNEL_TILES * BLOCK_C;
    const int row = blockIdx.x / (FILTER_TILES * CHANNEL_TILES);
    d = row / (ROWS_H * PIXELS_W * PARTS);
    h = row / (PIXELS_W * PARTS) % ROWS_H;
    w = row / PARTS % PIXELS_W + row % PARTS * TAP_PANELS * SPLIT_W;
  }
  DEVICE int pixel() const {
    return (d * DILATION_D % SPLIT_D * SPLIT_H + h * DILATION_H % SPLIT_H) * SPLIT_W + w % SPLIT_W;
  }
  DEVICE int distance() const {
    return (d * DILATION_D / SPLIT_D * PADDED_H + h * DILATION_H / SPLIT_H) * PADDED_W +
           w / SPLIT_W * ALONG;
  }
};

constexpr int STEPS = (POSITIONS + DEPTH - 1) / DEPTH;  // steps of an image, where DIRECT
DEVICE void fetch(Buffers ring, const CUtensorMap& x, const CUtensorMap& dy, const Work& work,
                  int first, int last) {
  for (int at = first; at < last; ++at, ring.step()) {
    const int position = DIRECT ? at % STEPS * DEPTH : at * DEPTH, image = at / STEPS,
              group = blockIdx.z;
    ring.await_free();
    expect_bytes(ring.full(), STAGE_BYTES);
    for (int i = 0; i < GROUPS_M; ++i) {
      const int filter = work.filter + i * 64;
      copy_box(ring.buffer() + i * DY_BYTES, dy, DIRECT ? position : filter,
               DIRECT ? group * FILTERS + filter : group, DIRECT ? image : position, ring.full());
    }
    for (int i = 0; i < GROUPS_C * CHANNEL_PANELS * BOXES; ++i) {
      const unsigned to = ring.buffer() + X_AT + i * BOX_ROWS * 128;
      const int channel = work.channel + i / BOXES * 64;
      if (DIRECT) copy_box(to, x, position, group * CHANNELS + channel, image, ring.full());
      if (!DIRECT)
        copy_box(to, x, channel, work.pixel() * GROUPS + group,
                 position + work.distance() + i % BOXES * BOX_ROWS, ring.full());
    }
  }
}

#if !DIRECT
/// The first step for both tensors; the first `blocks` blocks arrange x.
extern "C" __global__ void __launch_bounds__(256)
    arrange(const T* __restrict__ x, T* __restrict__ to_x, const T* __restrict__ dy,
            T* __restrict__ to_dy, int images, unsigned blocks) {
  if (blockIdx.x < blocks) {
    of_x::arrange_block(blockIdx.x, x, to_x, nullptr, nullptr, images, nullptr, false);
  } else {
    of_dy::arrange_block(blockIdx.x - blocks, dy, to_dy, nullptr, nullptr, images, nullptr, false);
  }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    wgrad(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap dy,
          float* __restrict__ partial_sums, int images) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const Work work;
  const long long steps = DIRECT ? (long long)images * STEPS
                                 : ((long long)images * POSITIONS + DEPTH - 1) / DEPTH;
  const int first = (int)(steps * blockIdx.y / SPLIT_K),
            last = (int)(steps * (blockIdx.y + 1) / SPLIT_K);
  Buffers ring(shared_address(shared), shared_address(shared) + BARRIERS);
  if (threadIdx.x == 0) ring.make(CONSUMERS / 32);
  __syncthreads();
  if (threadIdx.x >= CONSUMERS) {
    if (threadIdx.x == CONSUMERS) fetch(ring, x, dy, work, first, last);
    return;
  }
  const int group = threadIdx.x / 128, m = group % GROUPS_M, c = group / GROUPS_M % GROUPS_C,
            r = group / (GROUPS_M * GROUPS_C);
  float sums[1][TILE_N / 8][4];
  clear(sums);
  constexpr int STEP = DIRECT ? 32 : 2048;  // bytes between 16 positions
  Buffers before = ring;
  for (int at = first; at < last; ++at, ring.step()) {
    ring.await_full();
    const unsigned long long b = operand(
        ring.buffer() + X_AT + c * CHANNEL_PANELS * X_BYTES + r * DOWN * 128,
        TAP_PANELS > 1 ? ALONG * 128 : X_BYTES);
    start_products();
    UNROLLED for (int step = 0; step < DEPTH / 16; ++step) multiply(
        sums[0], operand(ring.buffer() + m * DY_BYTES + step * STEP), further(b, step * STEP));
    commit_products();
    if (at == first) continue;
    wait_products<1>();
    before.release();
    before.step();
  }
  wait_products<0>();
  settle(sums);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  UNROLLED for (int i = 0; i < 2; ++i) {
    const int filter = work.filter + m * 64 + warp * 16 + i * 8 + lane / 4;
    if (filter >= FILTERS) break;
    UNROLLED for (int j = 0; j < TILE_N / 8; ++j) {
      const int panel = j / 8, w = work.w + (TAP_PANELS > 1 ? panel * SPLIT_W : 0),
                h = GROUPS_R > 1 ? r : work.h;
      const int channel = work.channel + (TAP_PANELS > 1 ? c : c * CHANNEL_PANELS + panel) * 64 +
                          j % 8 * 8 + lane % 4 * 2;
      const long long tap = (work.d * OUT_H + h) * OUT_W + w;
      if (w < OUT_W && channel < C)
        *(float2*)(partial_sums +
                   ((((long long)blockIdx.y * GROUPS + blockIdx.z) * FILTERS + filter) * TAPS +
                    tap) *
                       C +
                   channel) = make_float2(sums[0][j][i * 2], sums[0][j][i * 2 + 1]);
    }
  }
}

/// The channels of a filter that a block adds up, with all taps. If there are many partial sums,
/// each warp adds an eighth of them, in a fixed order.
constexpr int CHUNK = TAPS <= 32 ? 64 : TAPS <= 128 ? 16 : 4, CHUNKS = (C + CHUNK - 1) / CHUNK;
constexpr int ADDERS = SPLIT_K < 8 ? 1 : 8, AT_ONCE = 256 / ADDERS;
extern "C" __global__ void __launch_bounds__(256)
    add_partial_sums(const float* __restrict__ partial_sums, T* __restrict__ dw) {
  __shared__ float4 parts[ADDERS][AT_ONCE];
  __shared__ float all[CHUNK * TAPS];  // [channel][tap], as in dw
  const int quad = threadIdx.x % AT_ONCE, part = threadIdx.x / AT_ONCE,
            filter = blockIdx.x / CHUNKS, first = blockIdx.x % CHUNKS * CHUNK;
  const auto add = [](float4& sum, float4 more) {
    sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
  };
  for (int at = quad; at - quad < CHUNK / 4 * TAPS; at += AT_ONCE) {
    const int tap = at / (CHUNK / 4), channel = at % (CHUNK / 4) * 4;
    const bool exists = tap < TAPS && first + channel < C;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
    for (int s = part; s < SPLIT_K && exists; s += ADDERS)
      add(sum, *(const float4*)(partial_sums +
                                (((long long)s * GROUPS * FILTERS + filter) * TAPS + tap) * C +
                                first + channel));
    if (ADDERS > 1) {
      __syncthreads();
      parts[part][quad] = sum;
      __syncthreads();
      for (int p = 1; p < ADDERS && part == 0; ++p) add(sum, parts[p][quad]);
    }
    if (!exists || part > 0) continue;
    const float four[4] = {sum.x, sum.y, sum.z, sum.w};
    for (int e = 0; e < 4; ++e) all[(channel + e) * TAPS + tap] = four[e];
  }
  __syncthreads();
  dw += filter / FILTERS * Y_GROUP + filter % FILTERS * Y_FILTER;
  for (int i = threadIdx.x; i < CHUNK * TAPS; i += 256) {
    const int channel = first + i / TAPS, tap = i % TAPS;
    // Where several groups were put into one, filters see the channels of their own group alone.
    if (channel < CHANNELS && channel / OWN_CHANNELS == filter % FILTERS / OWN_FILTERS)
      dw[channel % OWN_CHANNELS * Y_IMAGE + tap / (OUT_H * OUT_W) * Y_D +
         tap / OUT_W % OUT_H * Y_H + tap % OUT_W * Y_W] = T(all[i]);
  }
}
