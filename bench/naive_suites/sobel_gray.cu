// Edges of a gray image with the taps in nested loops; bytes.
#include <cuda_runtime.h>

__global__ void sobel(const unsigned char* in, unsigned char* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  const int gx[3][3] = {{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}};
  const int gy[3][3] = {{-1, -2, -1}, {0, 0, 0}, {1, 2, 1}};
  int sx = 0, sy = 0;
  for (int i = -1; i <= 1; i++) {
    for (int j = -1; j <= 1; j++) {
      int v = in[(y + i) * width + x + j];
      sx += v * gx[i + 1][j + 1];
      sy += v * gy[i + 1][j + 1];
    }
  }
  int mag = abs(sx) + abs(sy);
  out[y * width + x] = mag > 255 ? 255 : mag;
}

int main() {
  const int width = 1920, height = 1080;
  unsigned char *in, *out;
  cudaMalloc(&in, width * height);
  cudaMalloc(&out, width * height);
  dim3 block(32, 32);
  dim3 grid((width + 31) / 32, (height + 31) / 32);
  sobel<<<grid, block>>>(in, out, width, height);
  cudaDeviceSynchronize();
  return 0;
}
