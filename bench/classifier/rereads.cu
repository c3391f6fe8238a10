// The same data loaded again and again, though shared memory or registers could keep it.
#include <cuda_runtime.h>

__global__ void product(float* c, const float* a, const float* b) {
  int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  float s = 0;
  for (int k = 0; k < 256; ++k) s += a[row * 256 + k] * b[k * 1024 + col];
  c[row * 1024 + col] = s;
}
__global__ void product_mended(float* c, const float* a, const float* b) {
  __shared__ float left[16][65], right[16][64];
  int col = blockIdx.x * 64, row = blockIdx.y * 64;
  float s[4][4] = {};
  for (int k0 = 0; k0 < 256; k0 += 16) {
    for (int p = 0; p < 64; p += 16) {
      left[threadIdx.x][p + threadIdx.y] = a[(row + p + threadIdx.y) * 256 + k0 + threadIdx.x];
      right[threadIdx.y][p + threadIdx.x] = b[(k0 + threadIdx.y) * 1024 + col + p + threadIdx.x];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          s[i][j] += left[k][threadIdx.y + 16 * i] * right[k][threadIdx.x + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      c[(row + threadIdx.y + 16 * i) * 1024 + col + threadIdx.x + 16 * j] = s[i][j];
}

// All pairs of 4096 points
__global__ void pairs(float* y, const float* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i], s = 0;
  for (int j = 0; j < 4096; ++j) s += fabsf(x[j] - v);
  y[i] = s;
}
__global__ void pairs_mended(float* y, const float* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v[4], s[4] = {};
#pragma unroll
  for (int k = 0; k < 4; ++k) v[k] = x[4 * i + k];
  for (int j = 0; j < 4096; j += 4) {
    float4 four = *reinterpret_cast<const float4*>(x + j);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      s[k] += fabsf(four.x - v[k]) + fabsf(four.y - v[k]) + fabsf(four.z - v[k]) +
              fabsf(four.w - v[k]);
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) y[4 * i + k] = s[k];
}

// 31 neighbours of each element
__global__ void window(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n - 32) return;
  float s = 0;
  for (int k = 0; k < 32; ++k) s += x[i + k];
  y[i] = s;
}
__global__ void window_mended(float* y, const float* x, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  if (i >= n - 40) return;
  float v[40], s = 0;
#pragma unroll
  for (int k = 0; k < 40; k += 4) {
    float4 four = *reinterpret_cast<const float4*>(x + i + k);
    v[k] = four.x;
    v[k + 1] = four.y;
    v[k + 2] = four.z;
    v[k + 3] = four.w;
  }
#pragma unroll
  for (int k = 0; k < 32; ++k) s += v[k];
  float r[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    r[k] = s;
    s += v[k + 32] - v[k];
  }
#pragma unroll
  for (int k = 0; k < 8; k += 4)
    *reinterpret_cast<float4*>(y + i + k) = make_float4(r[k], r[k + 1], r[k + 2], r[k + 3]);
}

// 7 x 7 pixels for each pixel
__global__ void filter(float* y, const float* x, const float* w) {
  int a = blockIdx.x * 32 + threadIdx.x, b = blockIdx.y * 8 + threadIdx.y;
  if (a >= 1016 || b >= 1016) return;
  float s = 0;
  for (int j = 0; j < 7; ++j)
    for (int k = 0; k < 7; ++k) s += x[(b + j) * 1024 + a + k] * w[j * 7 + k];
  y[b * 1024 + a] = s;
}
__global__ void filter_mended(float* y, const float* x, const float* w) {
  int a = blockIdx.x * 32 + threadIdx.x, b = (blockIdx.y * 8 + threadIdx.y) * 4;
  if (a >= 1016 || b >= 1016) return;
  float s[4] = {};
#pragma unroll
  for (int k = 0; k < 7; ++k) {
    float v[10], f[7];
#pragma unroll
    for (int j = 0; j < 10; ++j) v[j] = x[(b + j) * 1024 + a + k];
#pragma unroll
    for (int j = 0; j < 7; ++j) f[j] = w[j * 7 + k];
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int j = 0; j < 7; ++j) s[r] += v[r + j] * f[j];
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) y[(b + r) * 1024 + a] = s[r];
}

int main() {
  const int n = 1048576;
  float *y, *x, *w;
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&w, n * sizeof(float));
  product<<<dim3(64, 64), dim3(16, 16)>>>(y, x, w);
  product_mended<<<dim3(16, 16), dim3(16, 16)>>>(y, x, w);
  pairs<<<4096, 256>>>(y, x);
  pairs_mended<<<1024, 256>>>(y, x);
  window<<<n / 256, 256>>>(y, x, n);
  window_mended<<<n / 8 / 256, 256>>>(y, x, n);
  filter<<<dim3(32, 128), dim3(32, 8)>>>(y, x, w);
  filter_mended<<<dim3(32, 32), dim3(32, 8)>>>(y, x, w);
}
