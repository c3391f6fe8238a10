// CUDA samples style: a separable convolution with the filter in constant memory and a halo in
// shared memory.
#include <cstdio>
#include <vector>

#define RADIUS 4
#define TILE_W 64
__constant__ float filter[2 * RADIUS + 1];

__global__ void rows(float* out, const float* in, int width, int height) {
  __shared__ float line[TILE_W + 2 * RADIUS];
  int y = blockIdx.y, x0 = blockIdx.x * TILE_W - RADIUS;
  for (int i = threadIdx.x; i < TILE_W + 2 * RADIUS; i += TILE_W) {
    int x = x0 + i;
    line[i] = x >= 0 && x < width ? in[y * width + x] : 0.0f;
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int k = 0; k <= 2 * RADIUS; ++k) sum += filter[k] * line[threadIdx.x + k];
  out[y * width + blockIdx.x * TILE_W + threadIdx.x] = sum;
}

__global__ void columns(float* out, const float* in, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int k = -RADIUS; k <= RADIUS; ++k) {
    int row = y + k;
    if (row >= 0 && row < height) sum += filter[k + RADIUS] * in[row * width + x];
  }
  out[y * width + x] = sum;
}

int main() {
  const int width = 192, height = 96;
  std::vector<float> host(width * height);
  for (int i = 0; i < width * height; ++i) host[i] = (i * 7) % 31;
  float weights[2 * RADIUS + 1];
  for (int i = 0; i <= 2 * RADIUS; ++i) weights[i] = 1.0f / (1 + i);
  cudaMemcpyToSymbol(filter, weights, sizeof weights);
  float *a, *b;
  cudaMalloc(&a, host.size() * sizeof(float));
  cudaMalloc(&b, host.size() * sizeof(float));
  cudaMemcpy(a, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice);
  rows<<<dim3(width / TILE_W, height), TILE_W>>>(b, a, width, height);
  columns<<<dim3(width / 16, height / 8), dim3(16, 8)>>>(a, b, width, height);
  cudaMemcpy(host.data(), a, host.size() * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : host) sum += v;
  printf("sum %.1f\n", sum);
  cudaFree(a);
  cudaFree(b);
}
