// One step of a fast Fourier transform, radix 2.
#include <cuda_runtime.h>

__global__ void butterfly(float2* data, int n, int half) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 2) return;
  int group = i / half, pos = i % half;
  int top = group * half * 2 + pos, bottom = top + half;
  float angle = -3.14159265f * pos / half;
  float c = cosf(angle), s = sinf(angle);
  float2 u = data[top], v = data[bottom];
  float2 t = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
  data[top] = make_float2(u.x + t.x, u.y + t.y);
  data[bottom] = make_float2(u.x - t.x, u.y - t.y);
}

int main() {
  const int n = 1 << 21, half = 1024;
  float2* data;
  cudaMalloc(&data, n * sizeof(float2));
  butterfly<<<n / 2 / 256, 256>>>(data, n, half);
  cudaDeviceSynchronize();
  return 0;
}
