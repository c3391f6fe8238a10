// A bilateral filter, weights computed at each tap.
#include <cuda_runtime.h>
#include <math.h>

__global__ void bilateral(const float* input, float* output, int width, int height, int radius,
                          float sigma_s, float sigma_r) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float center = input[y * width + x];
  float sum = 0.0f, norm = 0.0f;
  for (int dy = -radius; dy <= radius; dy++) {
    for (int dx = -radius; dx <= radius; dx++) {
      int xx = x + dx, yy = y + dy;
      if (xx < 0 || yy < 0 || xx >= width || yy >= height) continue;
      float value = input[yy * width + xx];
      float ds = dx * dx + dy * dy;
      float dr = value - center;
      float w = expf(-ds / (2.0f * sigma_s * sigma_s) - dr * dr / (2.0f * sigma_r * sigma_r));
      sum += w * value;
      norm += w;
    }
  }
  output[y * width + x] = sum / norm;
}

int main() {
  const int width = 1024, height = 768;
  float *input, *output;
  cudaMalloc(&input, width * height * sizeof(float));
  cudaMalloc(&output, width * height * sizeof(float));
  dim3 block(16, 16);
  dim3 grid(width / 16, height / 16);
  bilateral<<<grid, block>>>(input, output, width, height, 3, 2.0f, 0.2f);
  cudaDeviceSynchronize();
  return 0;
}
