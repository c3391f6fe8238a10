// Accesses of a warp that are far apart; the mended kernels access neighbours.
#include <cuda_runtime.h>

__global__ void columns_first(float* y, const float* x) {
  int a = blockIdx.x * 16 + threadIdx.x, b = blockIdx.y * 16 + threadIdx.y;
  y[a * 1024 + b] = 2 * x[a * 1024 + b];
}
__global__ void columns_first_mended(float* y, const float* x) {
  int a = blockIdx.x * 16 + threadIdx.x, b = blockIdx.y * 16 + threadIdx.y;
  y[b * 1024 + a] = 2 * x[b * 1024 + a];
}

__global__ void row_per_thread(float* y, const float* x) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < 1024; ++j) s += x[r * 1024 + j];
  y[r] = s;
}
__global__ void row_per_thread_mended(float* y, const float* x) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int j = 0; j < 1024; ++j) s += x[j * 1024 + r];
  y[r] = s;
}

__global__ void strided_load(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[(i * 33) % n];
}
__global__ void strided_load_mended(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}

__global__ void strided_store(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[(i * 33) % n] = x[i];
}
__global__ void strided_store_mended(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}

__global__ void transposed(float* y, const float* x) {
  int a = blockIdx.x * 32 + threadIdx.x, b = blockIdx.y * 8 + threadIdx.y;
  y[a * 1024 + b] = x[b * 1024 + a];
}
__global__ void transposed_mended(float* y, const float* x) {
  __shared__ float tile[32][33];
  int a = blockIdx.x * 32, b = blockIdx.y * 32;
  for (int k = threadIdx.y; k < 32; k += 8)
    tile[k][threadIdx.x] = x[(b + k) * 1024 + a + threadIdx.x];
  __syncthreads();
  for (int k = threadIdx.y; k < 32; k += 8)
    y[(a + k) * 1024 + b + threadIdx.x] = tile[threadIdx.x][k];
}

// Structures of 16 floats of which one is used
__global__ void structures(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 16) y[i] = x[i * 16 + 3];
}
__global__ void structures_mended(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 16) y[i] = x[3 * (n / 16) + i];
}

// Every eighth element, loaded and stored
__global__ void every_eighth(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 8) y[i * 8] = 3 * x[i * 8];
}
__global__ void every_eighth_mended(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 8) y[i] = 3 * x[i];
}

int main() {
  const int n = 1048576;
  float *y, *x;
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  columns_first<<<dim3(64, 64), dim3(16, 16)>>>(y, x);
  columns_first_mended<<<dim3(64, 64), dim3(16, 16)>>>(y, x);
  row_per_thread<<<16, 64>>>(y, x);
  row_per_thread_mended<<<16, 64>>>(y, x);
  strided_load<<<n / 256, 256>>>(y, x, n);
  strided_load_mended<<<n / 256, 256>>>(y, x, n);
  strided_store<<<n / 256, 256>>>(y, x, n);
  strided_store_mended<<<n / 256, 256>>>(y, x, n);
  transposed<<<dim3(32, 128), dim3(32, 8)>>>(y, x);
  transposed_mended<<<dim3(32, 32), dim3(32, 8)>>>(y, x);
  structures<<<n / 16 / 256, 256>>>(y, x, n);
  structures_mended<<<n / 16 / 256, 256>>>(y, x, n);
  every_eighth<<<n / 8 / 256, 256>>>(y, x, n);
  every_eighth_mended<<<n / 8 / 256, 256>>>(y, x, n);
}
