// Heat equation in three dimensions, with a halo of one cell; one thread a cell.
#include <cuda_runtime.h>

__global__ void heat3d(float* next, const float* now, int nx, int ny, int nz, float c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  int k = blockIdx.z * blockDim.z + threadIdx.z;
  if (i > 0 && i < nx - 1 && j > 0 && j < ny - 1 && k > 0 && k < nz - 1) {
    int id = i + j * nx + k * nx * ny;
    next[id] = now[id] + c * (now[id - 1] + now[id + 1] + now[id - nx] + now[id + nx] +
                              now[id - nx * ny] + now[id + nx * ny] - 6.0f * now[id]);
  }
}

int main() {
  const int nx = 128, ny = 128, nz = 128;
  float *next, *now;
  cudaMalloc(&next, nx * ny * nz * sizeof(float));
  cudaMalloc(&now, nx * ny * nz * sizeof(float));
  dim3 block(8, 8, 8), grid(nx / 8, ny / 8, nz / 8);
  heat3d<<<grid, block>>>(next, now, nx, ny, nz, 0.1f);
  cudaDeviceSynchronize();
  return 0;
}
