// Depthwise wgrad: dw[channel, tap] = Σ dy[image, channel, p] · x[image, channel, p + tap] over
// images and positions p, where each channel has a filter of its own. A thread takes strips of
// STRIP positions and accumulates ROWS rows of taps. Blocks divide images and positions (split-K);
// a second step adds the partial sums.
constexpr int ROW_COUNT = OUT_D * OUT_H, TAPS = ROW_COUNT * OUT_W, SUMS = ROWS * OUT_W;
constexpr int STRIPS = (FILTER_W + STRIP - 1) / STRIP,
              SEEN = (STRIP - 1) * DILATION_W + (OUT_W - 1) * STRIDE_W + 1;

/// Adds the positions q to q + STRIP - 1 of a row of dy.
DEVICE void add_strip(float (&sums)[ROWS][OUT_W], const T* __restrict__ x, const T* __restrict__ dy,
                      int d, int h, int q, int first_row) {
  float given[STRIP];
  UNROLLED for (int e = 0; e < STRIP; ++e) given[e] = q + e < FILTER_W ? float(dy[e * W_W]) : 0.0f;
  UNROLLED for (int r = 0; r < ROWS; ++r) {
    const int row = first_row + r;
    const int at_d = d * DILATION_D + row / OUT_H * STRIDE_D + SHIFT_D,
              at_h = h * DILATION_H + row % OUT_H * STRIDE_H + SHIFT_H;
    if (row >= ROW_COUNT || (unsigned)at_d >= IN_D || (unsigned)at_h >= IN_H) continue;
    const int left = q * DILATION_W + SHIFT_W;
    const T* const line = x + ((long long)at_d * IN_H + at_h) * IN_W + left;
    float seen[SEEN];
    UNROLLED for (int e = 0; e < SEEN; ++e) seen[e] = (unsigned)(left + e) < IN_W ? float(line[e])
                                                                                  : 0.0f;
    UNROLLED for (int t = 0; t < OUT_W; ++t) {
      UNROLLED for (int e = 0; e < STRIP; ++e)
          sums[r][t] += given[e] * seen[e * DILATION_W + t * STRIDE_W];
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
    wgrad(const T* __restrict__ x, const T* __restrict__ dy, float* __restrict__ partial_sums) {
  __shared__ float parts[8][SUMS];
  const int group = blockIdx.x, first_row = blockIdx.z * ROWS;
  float sums[ROWS][OUT_W] = {};
  x += group * X_FROM_GROUP;
  dy += group * W_GROUP;
  for (int at = blockIdx.y * 256 + threadIdx.x; at < CHANNELS * FILTER_D * FILTER_H * STRIPS;
       at += SPLIT_K * 256) {
    const int q = at % STRIPS * STRIP, h = at / STRIPS % FILTER_H,
              d = at / (STRIPS * FILTER_H) % FILTER_D, image = at / (STRIPS * FILTER_H * FILTER_D);
    add_strip(sums, x + image * X_FROM_CHANNEL,
              dy + image * W_CHANNEL + d * W_D + h * W_H + q * W_W, d, h, q, first_row);
  }
  UNROLLED for (int i = 0; i < SUMS; ++i) {
    float sum = sums[i / OUT_W][i % OUT_W];
    UNROLLED for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32][i] = sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < SUMS && first_row * OUT_W + i < TAPS; i += 256) {
    float sum = parts[0][i];
    for (int warp = 1; warp < 8; ++warp) sum += parts[warp][i];
    partial_sums[((long long)blockIdx.y * GROUPS + group) * TAPS + first_row * OUT_W + i] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(256)
    add_partial_sums(const float* __restrict__ partial_sums, T* __restrict__ dw) {
  const int at = blockIdx.x * 256 + threadIdx.x, tap = at % TAPS;
  if (at >= GROUPS * TAPS) return;
  float sum = 0;
#pragma unroll 8
  for (int s = 0; s < SPLIT_K; ++s) sum += partial_sums[(long long)s * GROUPS * TAPS + at];
  dw[at / TAPS * Y_GROUP + tap / (OUT_H * OUT_W) * Y_D + tap / OUT_W % OUT_H * Y_H +
     tap % OUT_W * Y_W] = T(sum);
}
