// Dedispersion of a radio signal: for each dispersion measure the sum over frequency channels, each
// delayed by its shift times the measure. Samples are bytes, so the sums are exact.
__constant__ float shifts[nr_channels];

/// Position of a thread's item `i` in the block's tile: items are contiguous, or a block apart.
template <bool STRIDED, int BLOCK, int TILE>
__device__ int ItemAt(int thread, int i) {
  return STRIDED ? i * BLOCK + thread : thread * TILE + i;
}

#if blocks_per_sm
#define LAUNCH_BOUNDS __launch_bounds__(block_size_x* block_size_y, blocks_per_sm)
#else
#define LAUNCH_BOUNDS __launch_bounds__(block_size_x* block_size_y)
#endif

extern "C" __global__ void LAUNCH_BOUNDS dedispersion_kernel(const unsigned char* samples, float* output) {
  constexpr int kRow = nr_samples + nr_dms;  // room for the largest delay: shifts are less than 1
  const int first_sample = blockIdx.x * block_size_x * tile_size_x, first_dm = blockIdx.y * block_size_y * tile_size_y;
  float sums[tile_size_y][tile_size_x] = {};
#if loop_unroll_factor_channel
#pragma unroll loop_unroll_factor_channel
#endif
  for (int channel = 0; channel < nr_channels; ++channel) {
#pragma unroll
    for (int ty = 0; ty < tile_size_y; ++ty) {
      const int dm = first_dm + ItemAt<tile_stride_y, block_size_y, tile_size_y>(threadIdx.y, ty);
      const int delay = __float2int_rd(__fmul_rn(shifts[channel], static_cast<float>(dm)));
#pragma unroll
      for (int tx = 0; tx < tile_size_x; ++tx) {
        const int sample = first_sample + ItemAt<tile_stride_x, block_size_x, tile_size_x>(threadIdx.x, tx);
        if (sample < nr_samples && dm < nr_dms) sums[ty][tx] += samples[channel * kRow + sample + delay];
      }
    }
  }
#pragma unroll
  for (int ty = 0; ty < tile_size_y; ++ty) {
    const int dm = first_dm + ItemAt<tile_stride_y, block_size_y, tile_size_y>(threadIdx.y, ty);
#pragma unroll
    for (int tx = 0; tx < tile_size_x; ++tx) {
      const int sample = first_sample + ItemAt<tile_stride_x, block_size_x, tile_size_x>(threadIdx.x, tx);
      if (sample < nr_samples && dm < nr_dms) output[dm * nr_samples + sample] = sums[ty][tx];
    }
  }
}
