// Softmax with a block for each row and trees in shared memory.
#include <cuda_runtime.h>

__global__ void softmax_kernel(const float* input, float* output, int N, int D) {
  __shared__ float buffer[256];
  int row = blockIdx.x, tid = threadIdx.x;
  if (row >= N) return;
  float m = -3.4e38f;
  for (int i = tid; i < D; i += 256) m = input[row * D + i] > m ? input[row * D + i] : m;
  buffer[tid] = m;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (tid < s) buffer[tid] = fmaxf(buffer[tid], buffer[tid + s]);
    __syncthreads();
  }
  m = buffer[0];
  __syncthreads();
  float t = 0.0f;
  for (int i = tid; i < D; i += 256) t += expf(input[row * D + i] - m);
  buffer[tid] = t;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (tid < s) buffer[tid] += buffer[tid + s];
    __syncthreads();
  }
  for (int i = tid; i < D; i += 256) output[row * D + i] = expf(input[row * D + i] - m) / buffer[0];
}

int main() {
  const int N = 4096, D = 2048;
  float *input, *output;
  cudaMalloc(&input, N * D * sizeof(float));
  cudaMalloc(&output, N * D * sizeof(float));
  softmax_kernel<<<N, 256>>>(input, output, N, D);
  cudaDeviceSynchronize();
  return 0;
}
