// Weights of one attention head: softmax of scaled scores; one thread a query.
#include <cuda_runtime.h>

__global__ void attention(float* weights, const float* q, const float* k, int queries, int keys) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= queries) return;
  float largest = -1e30f;
  for (int j = 0; j < keys; ++j) {
    float score = 0.0f;
    for (int d = 0; d < 64; ++d) score += q[i * 64 + d] * k[j * 64 + d];
    score *= 0.125f;
    weights[i * keys + j] = score;
    largest = fmaxf(largest, score);
  }
  float sum = 0.0f;
  for (int j = 0; j < keys; ++j) sum += expf(weights[i * keys + j] - largest);
  for (int j = 0; j < keys; ++j)
    weights[i * keys + j] = expf(weights[i * keys + j] - largest) / sum;
}

int main() {
  const int queries = 2048, keys = 512;
  float *weights, *q, *k;
  cudaMalloc(&weights, queries * keys * sizeof(float));
  cudaMalloc(&q, queries * 64 * sizeof(float));
  cudaMalloc(&k, keys * 64 * sizeof(float));
  attention<<<(queries + 127) / 128, 128>>>(weights, q, k, queries, keys);
  cudaDeviceSynchronize();
  return 0;
}
