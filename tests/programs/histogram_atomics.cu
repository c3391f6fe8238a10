// CUDA samples style: a histogram by atomics in shared memory, one part for each block, and a
// kernel that merges the parts.
#include <cstdio>
#include <vector>

constexpr int kBins = 64;
constexpr int kThreads = 128;

__global__ void histogram(unsigned* parts, const unsigned char* data, int n) {
  __shared__ unsigned bins[kBins];
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[data[i] >> 2], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) parts[blockIdx.x * kBins + i] = bins[i];
}

__global__ void merge(unsigned* bins, const unsigned* parts, int count) {
  unsigned sum = 0;
  for (int i = threadIdx.x; i < count; i += kThreads) sum += parts[i * kBins + blockIdx.x];
  __shared__ unsigned sums[kThreads];
  sums[threadIdx.x] = sum;
  for (int stride = kThreads / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (threadIdx.x < stride) sums[threadIdx.x] += sums[threadIdx.x + stride];
  }
  if (threadIdx.x == 0) bins[blockIdx.x] = sums[0];
}

int main() {
  const int n = 1 << 16, blocks = 24;
  std::vector<unsigned char> data(n);
  for (int i = 0; i < n; ++i) data[i] = (i * 2654435761u) >> 24;
  unsigned char* device_data;
  unsigned *parts, *bins, host[kBins];
  cudaMalloc(&device_data, n);
  cudaMalloc(&parts, blocks * kBins * sizeof(unsigned));
  cudaMalloc(&bins, sizeof host);
  cudaMemcpy(device_data, data.data(), n, cudaMemcpyHostToDevice);
  histogram<<<blocks, kThreads>>>(parts, device_data, n);
  merge<<<kBins, kThreads>>>(bins, parts, blocks);
  cudaMemcpy(host, bins, sizeof host, cudaMemcpyDeviceToHost);
  unsigned sum = 0;
  for (int i = 0; i < kBins; ++i) sum = sum * 31 + host[i];
  printf("bins %u\n", sum);
  cudaFree(device_data);
  cudaFree(parts);
  cudaFree(bins);
}
