// Sums of segments by a tree in shared memory with interleaved addresses.
#include <cuda_runtime.h>

__global__ void block_sum(float* out, const float* in, int n) {
  __shared__ float part[256];
  int t = threadIdx.x;
  int i = blockIdx.x * 256 + t;
  part[t] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int s = 1; s < 256; s *= 2) {
    int at = 2 * s * t;
    if (at < 256) part[at] += part[at + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

int main() {
  const int n = 1 << 22;
  float *out, *in;
  cudaMalloc(&out, (n / 256) * sizeof(float));
  cudaMalloc(&in, n * sizeof(float));
  block_sum<<<(n + 255) / 256, 256>>>(out, in, n);
  cudaDeviceSynchronize();
  return 0;
}
