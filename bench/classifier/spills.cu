// Arrays of a thread that the compiler cannot keep in registers.
#include <cuda_runtime.h>

// Indexed by a value that is known at run time only
__global__ void indexed(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a[32];
  for (int k = 0; k < 32; ++k) a[k] = x[(i + k * 256) % n];
  float s = 0;
  for (int k = 0; k < 256; ++k) {
    int at = (k * n + k) % 32;
    s += a[at];
    a[at] = s;
  }
  y[i] = s;
}
__global__ void indexed_mended(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a[32];
#pragma unroll
  for (int k = 0; k < 32; ++k) a[k] = x[(i + k * 256) % n];
  float s = 0;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
#pragma unroll
    for (int k = 0; k < 32; ++k) {
      s += a[k];
      a[k] = s;
    }
  }
  y[i] = s;
}

// Launch bounds that leave too few registers
template <int kMost>
__device__ void Many(float* y, const float* x, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a[96];
#pragma unroll
  for (int k = 0; k < 96; ++k) a[k] = x[(i + k * 128) % n];
  for (int r = 0; r < rounds; ++r) {
#pragma unroll
    for (int k = 0; k < 96; ++k) a[k] = a[k] * a[(k + 7) % 96] + a[(k + 31) % 96];
  }
  float s = 0;
#pragma unroll
  for (int k = 0; k < 96; ++k) s += a[k];
  y[i] = s;
}
__global__ void __launch_bounds__(256, 8) bounded(float* y, const float* x, int n, int rounds) {
  Many<1>(y, x, n, rounds);
}
__global__ void __launch_bounds__(256) bounded_mended(float* y, const float* x, int n, int rounds) {
  Many<2>(y, x, n, rounds);
}

// Sums of a thread in a loop that is not unrolled
__global__ void sums(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s[24];
  for (int j = 0; j < 24; ++j) s[j] = j;
  for (int k = 0; k < 16; ++k) {
    float v = x[(i + k * 1024) % n];
#pragma unroll 1
    for (int j = 0; j < 24; ++j) s[j] = s[j] * v + 1;
  }
  float all = 0;
  for (int j = 0; j < 24; ++j) all += s[j];
  y[i] = all;
}
__global__ void sums_mended(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s[24];
#pragma unroll
  for (int j = 0; j < 24; ++j) s[j] = j;
  for (int k = 0; k < 16; ++k) {
    float v = x[(i + k * 1024) % n];
#pragma unroll
    for (int j = 0; j < 24; ++j) s[j] = s[j] * v + 1;
  }
  float all = 0;
#pragma unroll
  for (int j = 0; j < 24; ++j) all += s[j];
  y[i] = all;
}

// A table of a thread
__global__ void table(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float t[64];
  for (int k = 0; k < 64; ++k) t[k] = k * 0.5f;
  float v = x[i];
  unsigned at = i;
  for (int k = 0; k < 200; ++k) {
    t[at % 64] = v;
    at = at * 5 + 1;
    v += t[at % 64];
  }
  y[i] = v;
}
__global__ void table_mended(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float t[64][64];
  for (int k = 0; k < 64; ++k) t[k][threadIdx.x] = k * 0.5f;
  float v = x[i];
  unsigned at = i;
  for (int k = 0; k < 200; ++k) {
    t[at % 64][threadIdx.x] = v;
    at = at * 5 + 1;
    v += t[at % 64][threadIdx.x];
  }
  y[i] = v;
}

int main() {
  const int n = 1048576, rounds = 8;
  float *y, *x;
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  indexed<<<n / 256, 256>>>(y, x, n);
  indexed_mended<<<n / 256, 256>>>(y, x, n);
  bounded<<<512, 256>>>(y, x, n, rounds);
  bounded_mended<<<512, 256>>>(y, x, n, rounds);
  sums<<<n / 256, 256>>>(y, x, n);
  sums_mended<<<n / 256, 256>>>(y, x, n);
  table<<<n / 64, 64>>>(y, x, n);
  table_mended<<<n / 64, 64>>>(y, x, n);
}
