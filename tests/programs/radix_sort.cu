// SHOC style: a radix sort of keys by four bits a pass: counts, offsets by one block, and the
// scatter, with a typedef and macros.
#include <cstdio>
#include <utility>
#include <vector>

typedef unsigned int uint;
#define RADIX_BITS 4
#define RADIX (1 << RADIX_BITS)
#define SORT_THREADS 64

__global__ void count_digits(const uint* keys, uint* counts, int shift, int per_thread) {
  __shared__ uint local[RADIX];
  if (threadIdx.x < RADIX) local[threadIdx.x] = 0;
  __syncthreads();
  int base = (blockIdx.x * SORT_THREADS + threadIdx.x) * per_thread;
  for (int i = 0; i < per_thread; ++i)
    atomicAdd(&local[(keys[base + i] >> shift) & (RADIX - 1)], 1u);
  __syncthreads();
  if (threadIdx.x < RADIX) counts[threadIdx.x * gridDim.x + blockIdx.x] = local[threadIdx.x];
}

__global__ void scan_counts(uint* counts, int n) {
  if (threadIdx.x != 0) return;
  uint sum = 0;
  for (int i = 0; i < n; ++i) {
    uint c = counts[i];
    counts[i] = sum;
    sum += c;
  }
}

__global__ void scatter(const uint* keys, uint* out, const uint* counts, int shift,
                        int per_block) {
  if (threadIdx.x >= RADIX) return;
  uint at = counts[threadIdx.x * gridDim.x + blockIdx.x];
  for (int i = 0; i < per_block; ++i) {
    uint key = keys[blockIdx.x * per_block + i];
    if (((key >> shift) & (RADIX - 1)) == threadIdx.x) out[at++] = key;
  }
}

int main() {
  const int n = 8192, blocks = 16, per_block = n / blocks;
  std::vector<uint> host(n);
  for (int i = 0; i < n; ++i) host[i] = (i * 2654435761u) & 0xffff;
  uint *keys, *out, *counts;
  cudaMalloc(&keys, n * sizeof(uint));
  cudaMalloc(&out, n * sizeof(uint));
  cudaMalloc(&counts, RADIX * blocks * sizeof(uint));
  cudaMemcpy(keys, host.data(), n * sizeof(uint), cudaMemcpyHostToDevice);
  for (int shift = 0; shift < 16; shift += RADIX_BITS) {
    count_digits<<<blocks, SORT_THREADS>>>(keys, counts, shift, per_block / SORT_THREADS);
    scan_counts<<<1, 32>>>(counts, RADIX * blocks);
    scatter<<<blocks, 32>>>(keys, out, counts, shift, per_block);
    std::swap(keys, out);
  }
  cudaMemcpy(host.data(), keys, n * sizeof(uint), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 1; i < n; ++i) wrong += host[i - 1] > host[i];
  printf("wrong %d\n", wrong);
  cudaFree(keys);
  cudaFree(out);
  cudaFree(counts);
}
