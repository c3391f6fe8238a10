// The Mandelbrot set, up to 256 steps a pixel.
#include <cuda_runtime.h>

__global__ void mandelbrot(int* out, int width, int height) {
  int px = blockIdx.x * blockDim.x + threadIdx.x;
  int py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= width || py >= height) return;
  float x0 = px * 3.5 / width - 2.5, y0 = py * 2.0 / height - 1.0;
  float x = 0.0, y = 0.0;
  int i = 0;
  while (x * x + y * y <= 4.0 && i < 256) {
    float t = x * x - y * y + x0;
    y = 2.0 * x * y + y0;
    x = t;
    i++;
  }
  out[py * width + px] = i;
}

int main() {
  const int width = 1024, height = 512;
  int* out;
  cudaMalloc(&out, width * height * sizeof(int));
  mandelbrot<<<dim3(width / 16, height / 16), dim3(16, 16)>>>(out, width, height);
  cudaDeviceSynchronize();
  return 0;
}
