// Edges of a grey image of bytes.
#include <cuda_runtime.h>

__global__ void sobel(const unsigned char* in, unsigned char* out, int width, int height) {
  int x = threadIdx.x + blockIdx.x * blockDim.x;
  int y = threadIdx.y + blockIdx.y * blockDim.y;
  if (x > 0 && y > 0 && x < width - 1 && y < height - 1) {
    int dx = (-1 * in[(y - 1) * width + (x - 1)]) + (-2 * in[y * width + (x - 1)]) +
             (-1 * in[(y + 1) * width + (x - 1)]) + (in[(y - 1) * width + (x + 1)]) +
             (2 * in[y * width + (x + 1)]) + (in[(y + 1) * width + (x + 1)]);
    int dy = in[(y - 1) * width + (x - 1)] + (2 * in[(y - 1) * width + x]) +
             in[(y - 1) * width + (x + 1)] + (-1 * in[(y + 1) * width + (x - 1)]) +
             (-2 * in[(y + 1) * width + x]) + (-1 * in[(y + 1) * width + (x + 1)]);
    out[y * width + x] = min(255, (int)sqrtf((float)(dx * dx + dy * dy)));
  }
}

int main() {
  const int width = 2048, height = 2048;
  unsigned char *in, *out;
  cudaMalloc(&in, width * height);
  cudaMalloc(&out, width * height);
  dim3 block(16, 16), grid((width + 15) / 16, (height + 15) / 16);
  sobel<<<grid, block>>>(in, out, width, height);
  cudaDeviceSynchronize();
  return 0;
}
