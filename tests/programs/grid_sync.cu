// Cooperative groups: a kernel that synchronises its whole grid between steps, and tiles of 8
// threads in another.
#include <cooperative_groups.h>

#include <cstdio>
#include <vector>

namespace cg = cooperative_groups;

__global__ void relax(float* a, float* b, int n, int steps) {
  cg::grid_group grid = cg::this_grid();
  for (int s = 0; s < steps; ++s) {
    for (int i = grid.thread_rank(); i < n; i += grid.size()) {
      float left = a[i > 0 ? i - 1 : 0], right = a[i < n - 1 ? i + 1 : n - 1];
      b[i] = 0.25f * left + 0.5f * a[i] + 0.25f * right;
    }
    grid.sync();
    float* t = a;
    a = b;
    b = t;
  }
}

__global__ void sums_of_eight(float* out, const float* in, int n) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? in[i] : 0;
  for (int d = 4; d > 0; d /= 2) v += tile.shfl_down(v, d);
  if (tile.thread_rank() == 0 && i < n) out[i / 8] = v;
}

int main() {
  int n = 4096, steps = 4;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 32;
  float *a, *b;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMemcpy(a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  void* args[] = {&a, &b, &n, &steps};
  cudaLaunchCooperativeKernel((void*)relax, dim3(8), dim3(128), args, 0, 0);
  sums_of_eight<<<n / 128, 128>>>(b, a, n);
  cudaMemcpy(host.data(), b, n / 8 * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n / 8; ++i) sum += host[i] * (i % 3);
  printf("sum %.2f\n", sum);
  cudaFree(a);
  cudaFree(b);
}
