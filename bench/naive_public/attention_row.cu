// Attention of one head; a thread for each element of the result computes all scores again.
#include <cuda_runtime.h>

__global__ void attention_row(const float* Q, const float* K, const float* V, float* O, int N,
                              int d, float scale) {
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N || c >= d) return;
  float m = -1e30f;
  for (int j = 0; j < N; j++) {
    float s = 0;
    for (int k = 0; k < d; k++) s += Q[i * d + k] * K[j * d + k];
    m = fmaxf(m, s * scale);
  }
  float l = 0, o = 0;
  for (int j = 0; j < N; j++) {
    float s = 0;
    for (int k = 0; k < d; k++) s += Q[i * d + k] * K[j * d + k];
    float p = expf(s * scale - m);
    l += p;
    o += p * V[j * d + c];
  }
  O[i * d + c] = o / l;
}

int main() {
  const int N = 512, d = 64;
  float *Q, *K, *V, *O;
  cudaMalloc(&Q, N * d * sizeof(float));
  cudaMalloc(&K, N * d * sizeof(float));
  cudaMalloc(&V, N * d * sizeof(float));
  cudaMalloc(&O, N * d * sizeof(float));
  dim3 block(16, 16);
  dim3 grid(d / 16, N / 16);
  attention_row<<<grid, block>>>(Q, K, V, O, N, d, 0.125f);
  cudaDeviceSynchronize();
  return 0;
}
