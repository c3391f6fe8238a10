// A pipe of the SM is busy all the time; the mended kernels do less on it.
#include <cuda_runtime.h>

#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x

template <int kSteps>
__device__ float Fused(float v) {
  float w = v + 1, u = v + 2, z = v + 3;
  for (int k = 0; k < kSteps; ++k) {
    v = v * w + u;
    w = w * u + z;
    u = u * z + v;
    z = z * v + w;
  }
  return v + w + u + z;
}
__global__ void fused(float* y, const float* x) {
  INDEX;
  y[i] = Fused<400>(x[i]);
}
__global__ void fused_mended(float* y, const float* x) {
  INDEX;
  y[i] = Fused<40>(x[i]);
}

template <int kSteps>
__device__ int Integers(int v) {
  unsigned a = v, b = v + 1, c = v + 2, d = v + 3;
  for (int k = 0; k < kSteps; ++k) {
    a = (a << 3) ^ b;
    b = (b >> 5) ^ c;
    c = (c << 7) ^ d;
    d = (d >> 9) ^ a;
  }
  return a + b + c + d;
}
__global__ void integers(int* y, const int* x) {
  INDEX;
  y[i] = Integers<300>(x[i]);
}
__global__ void integers_mended(int* y, const int* x) {
  INDEX;
  y[i] = Integers<30>(x[i]);
}

__global__ void special(float* y, const float* x) {
  INDEX;
  float v = x[i], w = v + 1, u = v + 2, z = v + 3;
  for (int k = 0; k < 100; ++k) {
    v = __sinf(v);
    w = __cosf(w);
    u = __sinf(u);
    z = __cosf(z);
  }
  y[i] = v + w + u + z;
}
__global__ void special_mended(float* y, const float* x) {
  INDEX;
  float v = x[i], w = v + 1, u = v + 2, z = v + 3;
  for (int k = 0; k < 10; ++k) {
    v = __sinf(v);
    w = __cosf(w);
    u = __sinf(u);
    z = __cosf(z);
  }
  y[i] = v + w + u + z;
}

// Divisions by a value that is known at run time only; its inverse does as well
__global__ void divisions(float* y, const float* x, float by) {
  INDEX;
  float v = x[i], w = v + 1, u = v + 2, z = v + 3;
  for (int k = 0; k < 64; ++k) {
    v = v / by + 1;
    w = w / by + 1;
    u = u / by + 1;
    z = z / by + 1;
  }
  y[i] = v + w + u + z;
}
__global__ void divisions_mended(float* y, const float* x, float by) {
  INDEX;
  float v = x[i], w = v + 1, u = v + 2, z = v + 3, inverse = 1 / by;
  for (int k = 0; k < 64; ++k) {
    v = v * inverse + 1;
    w = w * inverse + 1;
    u = u * inverse + 1;
    z = z * inverse + 1;
  }
  y[i] = v + w + u + z;
}

int main() {
  const int n = 1048576;
  const float by = 3.0f;
  float *y, *x;
  int *q, *p;
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&q, n * sizeof(int));
  cudaMalloc(&p, n * sizeof(int));
  fused<<<n / 256, 256>>>(y, x);
  fused_mended<<<n / 256, 256>>>(y, x);
  integers<<<n / 256, 256>>>(q, p);
  integers_mended<<<n / 256, 256>>>(q, p);
  special<<<n / 256, 256>>>(y, x);
  special_mended<<<n / 256, 256>>>(y, x);
  divisions<<<n / 256, 256>>>(y, x, by);
  divisions_mended<<<n / 256, 256>>>(y, x, by);
}
