// A Julia set with a complex structure of the kernel's own.
#include <cuda_runtime.h>

struct cuComplex {
  float r, i;
  __device__ cuComplex(float a, float b) : r(a), i(b) {}
  __device__ float magnitude2(void) { return r * r + i * i; }
  __device__ cuComplex operator*(const cuComplex& a) {
    return cuComplex(r * a.r - i * a.i, i * a.r + r * a.i);
  }
  __device__ cuComplex operator+(const cuComplex& a) { return cuComplex(r + a.r, i + a.i); }
};

__global__ void julia(unsigned char* ptr, int dim) {
  int x = blockIdx.x;
  int y = blockIdx.y;
  int offset = x + y * gridDim.x;
  const float scale = 1.5;
  float jx = scale * (float)(dim / 2 - x) / (dim / 2);
  float jy = scale * (float)(dim / 2 - y) / (dim / 2);
  cuComplex c(-0.8, 0.156);
  cuComplex a(jx, jy);
  int value = 1;
  for (int i = 0; i < 200; i++) {
    a = a * a + c;
    if (a.magnitude2() > 1000) {
      value = 0;
      break;
    }
  }
  ptr[offset] = 255 * value;
}

int main() {
  const int dim = 512;
  unsigned char* dev_bitmap;
  cudaMalloc((void**)&dev_bitmap, dim * dim);
  dim3 grid(dim, dim);
  julia<<<grid, 1>>>(dev_bitmap, dim);
  cudaDeviceSynchronize();
  return 0;
}
