// Seven-point stencil in three dimensions; a thread walks along z.
#include <cuda_runtime.h>

__global__ void stencil3d(float* out, const float* in, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || x >= nx - 1 || y < 1 || y >= ny - 1) return;
  for (int z = 1; z < nz - 1; ++z) {
    int i = (z * ny + y) * nx + x;
    out[i] = 0.4 * in[i] + 0.1 * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] +
                                  in[i - nx * ny] + in[i + nx * ny]);
  }
}

int main() {
  const int nx = 256, ny = 256, nz = 64;
  float *out, *in;
  cudaMalloc(&out, nx * ny * nz * sizeof(float));
  cudaMalloc(&in, nx * ny * nz * sizeof(float));
  dim3 block(16, 16);
  dim3 grid((nx + 15) / 16, (ny + 15) / 16);
  stencil3d<<<grid, block>>>(out, in, nx, ny, nz);
  cudaDeviceSynchronize();
  return 0;
}
