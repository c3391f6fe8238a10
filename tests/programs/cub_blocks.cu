// CUB inside a kernel (a block's reduction) and as device-wide sums whose kernels are the
// library's.
#include <cub/cub.cuh>

#include <cstdio>
#include <vector>

template <int THREADS, int ITEMS>
__global__ void squares(const float* in, float* out, int n) {
  using Reduce = cub::BlockReduce<float, THREADS>;
  __shared__ typename Reduce::TempStorage storage;
  float sum = 0;
  for (int k = 0; k < ITEMS; ++k) {
    int i = (blockIdx.x * ITEMS + k) * THREADS + threadIdx.x;
    if (i < n) sum += in[i] * in[i];
  }
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

int main() {
  const int n = 1 << 15, blocks = n / (128 * 4);
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = (i % 8) * 0.25f;
  float *in, *parts, *sum, result;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&parts, blocks * sizeof(float));
  cudaMalloc(&sum, sizeof(float));
  cudaMemcpy(in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  squares<128, 4><<<blocks, 128>>>(in, parts, n);
  void* temporary = nullptr;
  size_t bytes = 0;
  cub::DeviceReduce::Sum(temporary, bytes, parts, sum, blocks);
  cudaMalloc(&temporary, bytes);
  cub::DeviceReduce::Sum(temporary, bytes, parts, sum, blocks);
  cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost);
  printf("sum %.1f\n", result);
  cudaFree(in);
  cudaFree(parts);
  cudaFree(sum);
  cudaFree(temporary);
}
