// Chains of dependent instructions; the mended kernels have shorter or more chains.
#include <cuda_runtime.h>

template <int kSteps>
__device__ void Pointers(float* y, const float* x) {
  int i = threadIdx.x;
  float v = x[i];
  for (int k = 0; k < kSteps; ++k) v = x[((int)v & 1) + i];
  y[blockIdx.x * 32 + i] = v;
}
__global__ void pointers(float* y, const float* x) { Pointers<2000>(y, x); }
__global__ void pointers_mended(float* y, const float* x) { Pointers<100>(y, x); }

// One chain of roots: each waits for the one before
__global__ void roots(float* y, const float* x) {
  int i = blockIdx.x * 32 + threadIdx.x;
  float v = x[i];
  for (int k = 0; k < 1024; ++k) v = rsqrtf(v + 1.5f);
  y[i] = v;
}
__global__ void roots_mended(float* y, const float* x) {
  int i = blockIdx.x * 32 + threadIdx.x;
  float a = x[i], b = a + 1, c = a + 2, d = a + 3;
  for (int k = 0; k < 256; ++k) {
    a = rsqrtf(a + 1.5f);
    b = rsqrtf(b + 1.5f);
    c = rsqrtf(c + 1.5f);
    d = rsqrtf(d + 1.5f);
  }
  y[i] = a + b + c + d;
}

// Exponentials of exponentials
__global__ void exponentials(float* y, const float* x) {
  int i = blockIdx.x * 32 + threadIdx.x;
  float v = x[i];
  for (int k = 0; k < 512; ++k) v = __expf(-v * v);
  y[i] = v;
}
__global__ void exponentials_mended(float* y, const float* x) {
  int i = blockIdx.x * 32 + threadIdx.x;
  float v = x[i];
  for (int k = 0; k < 64; ++k) v = __expf(-v * v);
  y[i] = v;
}

// A walk through a list in shared memory
__global__ void list(int* y, const int* x) {
  __shared__ int next[32];
  next[threadIdx.x] = x[threadIdx.x] & 31;
  __syncthreads();
  int at = threadIdx.x;
  for (int k = 0; k < 2000; ++k) at = next[at] ^ (k & 31);
  y[blockIdx.x * 32 + threadIdx.x] = at;
}
__global__ void list_mended(int* y, const int* x) {
  __shared__ int next[32];
  next[threadIdx.x] = x[threadIdx.x] & 31;
  __syncthreads();
  int at = threadIdx.x;
  for (int k = 0; k < 100; ++k) at = next[at] ^ (k & 31);
  y[blockIdx.x * 32 + threadIdx.x] = at;
}

int main() {
  const int n = 65536;
  float *y, *x;
  int *q, *p;
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&q, n * sizeof(int));
  cudaMalloc(&p, n * sizeof(int));
  pointers<<<n / 32, 32>>>(y, x);
  pointers_mended<<<n / 32, 32>>>(y, x);
  roots<<<2048, 32>>>(y, x);
  roots_mended<<<2048, 32>>>(y, x);
  exponentials<<<2048, 32>>>(y, x);
  exponentials_mended<<<2048, 32>>>(y, x);
  list<<<n / 32, 32>>>(q, p);
  list_mended<<<n / 32, 32>>>(q, p);
}
