// A heat stencil in a whole program: coefficients from the host, error checks, timers, containers.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#define CHECK(call) \
  if (cudaError_t error = (call); error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error))
#define BLOCK_X 32
#define BLOCK_Y 8

static std::map<std::string, float> milliseconds;

__constant__ float coefficients[2];

template <typename T>
__global__ void heat(const T* __restrict__ in, T* __restrict__ out, int nx, int ny, int nz) {
  const int x = blockIdx.x * BLOCK_X + threadIdx.x;
  const int y = blockIdx.y * BLOCK_Y + threadIdx.y;
  if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
  for (int z = 1; z < nz - 1; ++z) {
    const T* p = in + (size_t(z) * ny + y) * nx + x;
    const T around = p[-1] + p[1] + p[-nx] + p[nx] + p[-nx * ny] + p[nx * ny];
    out[(size_t(z) * ny + y) * nx + x] = coefficients[0] * p[0] + coefficients[1] * around;
  }
}

int main() {
  const int nx = 128, ny = 128, nz = 32;
  const float alpha = 0.1f;
  std::vector<float> field(nx * ny * nz, 1.0f);
  float *now, *next;
  CHECK(cudaMalloc(&now, field.size() * sizeof(float)));
  CHECK(cudaMalloc(&next, field.size() * sizeof(float)));
  const float host[2] = {1 - 6 * alpha, alpha};
  CHECK(cudaMemcpyToSymbol(coefficients, host, sizeof(host)));
  CHECK(cudaMemcpy(now, field.data(), field.size() * sizeof(float), cudaMemcpyHostToDevice));
  dim3 block(BLOCK_X, BLOCK_Y), grid((nx + BLOCK_X - 1) / BLOCK_X, (ny + BLOCK_Y - 1) / BLOCK_Y);
  heat<float><<<grid, block>>>(now, next, nx, ny, nz);
  CHECK(cudaDeviceSynchronize());
  for (const auto& [name, time] : milliseconds) std::printf("%s %f\n", name.c_str(), time);
}
