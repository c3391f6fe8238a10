// A blur with weights in a buffer and clamped borders.
#include <cuda_runtime.h>

__global__ void gaussian_blur(const float* input, float* output, const float* weights, int width,
                              int height, int radius) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col >= width || row >= height) return;
  int size = 2 * radius + 1;
  float sum = 0.0f;
  for (int dy = -radius; dy <= radius; ++dy) {
    for (int dx = -radius; dx <= radius; ++dx) {
      int y = min(max(row + dy, 0), height - 1);
      int x = min(max(col + dx, 0), width - 1);
      sum += input[y * width + x] * weights[(dy + radius) * size + dx + radius];
    }
  }
  output[row * width + col] = sum;
}

int main() {
  const int width = 1024, height = 768, radius = 4;
  float *input, *output, *weights;
  cudaMalloc(&input, width * height * sizeof(float));
  cudaMalloc(&output, width * height * sizeof(float));
  cudaMalloc(&weights, (2 * radius + 1) * (2 * radius + 1) * sizeof(float));
  dim3 block(16, 16);
  dim3 grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);
  gaussian_blur<<<grid, block>>>(input, output, weights, width, height, radius);
  cudaDeviceSynchronize();
  return 0;
}
