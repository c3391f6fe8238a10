// One step of k-means: the nearest of 16 centres for each point of 8 coordinates.
#include <cuda_runtime.h>

__global__ void kmeans(int* nearest, const float* points, const float* centres, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float best = 1e30f;
  int at = 0;
  for (int c = 0; c < 16; ++c) {
    float distance = 0.0f;
    for (int d = 0; d < 8; ++d) {
      float difference = points[i * 8 + d] - centres[c * 8 + d];
      distance += difference * difference;
    }
    if (distance < best) {
      best = distance;
      at = c;
    }
  }
  nearest[i] = at;
}

int main() {
  const int n = 1 << 18;
  int* nearest;
  float *points, *centres;
  cudaMalloc(&nearest, n * sizeof(int));
  cudaMalloc(&points, n * 8 * sizeof(float));
  cudaMalloc(&centres, 16 * 8 * sizeof(float));
  kmeans<<<(n + 255) / 256, 256>>>(nearest, points, centres, n);
  cudaDeviceSynchronize();
  return 0;
}
