// A 2-D convolution. Its parameters are macros, as for Kernel Tuner; convolution.json lists them.
#ifndef read_only
#define read_only 0
#endif

__constant__ float d_filter[filter_height * filter_width];

extern "C" __global__ void convolution_kernel(float* output, const float* input, int width, int height) {
  const int input_width = width + filter_width - 1;
  const int x0 = blockIdx.x * block_size_x * tile_size_x + threadIdx.x;
  const int y0 = blockIdx.y * block_size_y * tile_size_y + threadIdx.y;
#if use_shmem
  constexpr int shared_width = block_size_x * tile_size_x + filter_width - 1;
  constexpr int shared_height = block_size_y * tile_size_y + filter_height - 1;
  __shared__ float pixels[shared_height][shared_width + use_padding];
  for (int y = threadIdx.y; y < shared_height; y += block_size_y) {
    for (int x = threadIdx.x; x < shared_width; x += block_size_x) {
      const int row = blockIdx.y * block_size_y * tile_size_y + y, column = blockIdx.x * block_size_x * tile_size_x + x;
      pixels[y][x] = row < height + filter_height - 1 && column < input_width ? input[row * input_width + column] : 0.0f;
    }
  }
  __syncthreads();
#endif
#pragma unroll
  for (int ty = 0; ty < tile_size_y; ++ty) {
#pragma unroll
    for (int tx = 0; tx < tile_size_x; ++tx) {
      const int x = x0 + tx * block_size_x, y = y0 + ty * block_size_y;
      if (x >= width || y >= height) continue;
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < filter_height; ++i) {
#pragma unroll
        for (int j = 0; j < filter_width; ++j) {
#if use_shmem
          sum += pixels[threadIdx.y + ty * block_size_y + i][threadIdx.x + tx * block_size_x + j] * d_filter[i * filter_width + j];
#elif read_only
          sum += __ldg(input + (y + i) * input_width + x + j) * d_filter[i * filter_width + j];
#else
          sum += input[(y + i) * input_width + x + j] * d_filter[i * filter_width + j];
#endif
        }
      }
      output[y * width + x] = sum;
    }
  }
}
