// SHOC style: a prefix sum in three kernels with dynamic shared memory: blocks, their sums, and the
// addition of the offsets in place.
#include <cstdio>
#include <vector>

__global__ void scan_blocks(int* out, int* sums, const int* in, int n) {
  extern __shared__ int temp[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  temp[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    int before = threadIdx.x >= d ? temp[threadIdx.x - d] : 0;
    __syncthreads();
    temp[threadIdx.x] += before;
    __syncthreads();
  }
  if (i < n) out[i] = temp[threadIdx.x];
  if (sums != nullptr && threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = temp[threadIdx.x];
}

__global__ void add_offsets(int* out, const int* sums, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0 && i < n) out[i] += sums[blockIdx.x - 1];
}

int main() {
  const int n = 20000, threads = 256, blocks = (n + threads - 1) / threads;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 7;
  int *in, *out, *sums, *scanned;
  cudaMalloc(&in, n * sizeof(int));
  cudaMalloc(&out, n * sizeof(int));
  cudaMalloc(&sums, blocks * sizeof(int));
  cudaMalloc(&scanned, blocks * sizeof(int));
  cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  scan_blocks<<<blocks, threads, threads * sizeof(int)>>>(out, sums, in, n);
  scan_blocks<<<1, 128, 128 * sizeof(int)>>>(scanned, nullptr, sums, blocks);
  add_offsets<<<blocks, threads>>>(out, scanned, n);
  cudaMemcpy(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost);
  printf("last %d middle %d\n", host[n - 1], host[n / 2]);
  cudaFree(in);
  cudaFree(out);
  cudaFree(sums);
  cudaFree(scanned);
}
