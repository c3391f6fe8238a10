// One anti-diagonal of a sequence alignment (Needleman-Wunsch), without tiles.
#include <cuda_runtime.h>

__device__ int maximum(int a, int b, int c) {
  int k;
  if (a <= b)
    k = b;
  else
    k = a;
  if (k <= c) return (c);
  return (k);
}

__global__ void needle_diagonal(const int* reference, int* score, int cols, int diagonal,
                                int penalty) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
  int j = diagonal - i;
  if (i >= cols || j < 1 || j >= cols) return;
  score[i * cols + j] =
      maximum(score[(i - 1) * cols + (j - 1)] + reference[i * cols + j],
              score[i * cols + (j - 1)] - penalty, score[(i - 1) * cols + j] - penalty);
}

int main() {
  int cols = 2049, penalty = 10;
  int *reference, *score;
  cudaMalloc(&reference, sizeof(int) * cols * cols);
  cudaMalloc(&score, sizeof(int) * cols * cols);
  needle_diagonal<<<(cols + 255) / 256, 256>>>(reference, score, cols, 2049, penalty);
  cudaDeviceSynchronize();
  return 0;
}
