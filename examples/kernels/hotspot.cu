// Heat on a chip: `iterations` explicit steps of a five-point stencil with a power source, in one
// launch. A block computes its tile with a halo as wide as the number of steps; after each step the
// exact part is one cell narrower. temporal_tiling_factor is the number of steps between updates
// of the computed part: fewer bounds to compute, more cells in vain. Parameters: hotspot.json.
constexpr int kTileX = block_size_x * tile_size_x, kTileY = block_size_y * tile_size_y;
constexpr int kWidth = kTileX + 2 * iterations, kHeight = kTileY + 2 * iterations;
constexpr float kAmbient = 80.0f;

#if blocks_per_sm
#define LAUNCH_BOUNDS __launch_bounds__(block_size_x* block_size_y, blocks_per_sm)
#else
#define LAUNCH_BOUNDS __launch_bounds__(block_size_x* block_size_y)
#endif

extern "C" __global__ void LAUNCH_BOUNDS calculate_temp(const float* power, const float* temp, float* temp_dst, float rx,
                                                        float ry, float rz, float step) {
  __shared__ float heat[2][kHeight][kWidth];
#if sh_power
  __shared__ float source[kHeight][kWidth];
#endif
  const int origin_x = blockIdx.x * kTileX - iterations, origin_y = blockIdx.y * kTileY - iterations;
  for (int y = threadIdx.y; y < kHeight; y += block_size_y) {
    for (int x = threadIdx.x; x < kWidth; x += block_size_x) {
      const int gx = origin_x + x, gy = origin_y + y;
      const bool inside = gx >= 0 && gx < grid_width && gy >= 0 && gy < grid_height;
      heat[0][y][x] = inside ? temp[gy * grid_width + gx] : 0.0f;
      heat[1][y][x] = 0.0f;
#if sh_power
      source[y][x] = inside ? power[gy * grid_width + gx] : 0.0f;
#endif
    }
  }
  __syncthreads();

  for (int begin = 0; begin < iterations; begin += temporal_tiling_factor) {
    const int edge = begin + 1;
#pragma unroll loop_unroll_factor_t
    for (int t = 0; t < temporal_tiling_factor; ++t) {
      const int from = (begin + t) % 2;
      for (int y = edge + threadIdx.y; y < kHeight - edge; y += block_size_y) {
        for (int x = edge + threadIdx.x; x < kWidth - edge; x += block_size_x) {
          const int gx = origin_x + x, gy = origin_y + y;
          if (gx < 0 || gx >= grid_width || gy < 0 || gy >= grid_height) continue;
          const float here = heat[from][y][x];
          // The chip's edge is insulated: a missing neighbour is as warm as the cell itself.
          const float north = gy > 0 ? heat[from][y - 1][x] : here;
          const float south = gy < grid_height - 1 ? heat[from][y + 1][x] : here;
          const float west = gx > 0 ? heat[from][y][x - 1] : here;
          const float east = gx < grid_width - 1 ? heat[from][y][x + 1] : here;
#if sh_power
          const float watts = source[y][x];
#else
          const float watts = power[gy * grid_width + gx];
#endif
          heat[1 - from][y][x] = here + step * (watts + (north + south - 2.0f * here) * ry +
                                                (east + west - 2.0f * here) * rx + (kAmbient - here) * rz);
        }
      }
      __syncthreads();
    }
  }

#pragma unroll
  for (int ty = 0; ty < tile_size_y; ++ty) {
#pragma unroll
    for (int tx = 0; tx < tile_size_x; ++tx) {
      const int x = threadIdx.x + tx * block_size_x + iterations, y = threadIdx.y + ty * block_size_y + iterations;
      const int gx = origin_x + x, gy = origin_y + y;
      if (gx < grid_width && gy < grid_height) temp_dst[gy * grid_width + gx] = heat[iterations % 2][y][x];
    }
  }
}
