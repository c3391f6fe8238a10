// Third step of PolyBench's fdtd2d: the magnetic field from the electric one.
#include <cuda_runtime.h>

#define NX 2048
#define NY 2048

__global__ void fdtd_step3_kernel(int nx, int ny, float* ex, float* ey, float* hz) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if ((i < (nx - 1)) && (j < (ny - 1))) {
    hz[i * ny + j] = hz[i * ny + j] - 0.7f * (ex[i * (ny + 1) + (j + 1)] - ex[i * (ny + 1) + j] +
                                              ey[(i + 1) * ny + j] - ey[i * ny + j]);
  }
}

int main() {
  float *ex, *ey, *hz;
  cudaMalloc(&ex, sizeof(float) * NX * (NY + 1));
  cudaMalloc(&ey, sizeof(float) * (NX + 1) * NY);
  cudaMalloc(&hz, sizeof(float) * NX * NY);
  dim3 block(32, 8);
  dim3 grid((NY + block.x - 1) / block.x, (NX + block.y - 1) / block.y);
  fdtd_step3_kernel<<<grid, block>>>(NX, NY, ex, ey, hz);
  cudaDeviceSynchronize();
  return 0;
}
