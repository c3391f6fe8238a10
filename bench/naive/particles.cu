// Moves particles that are stored as arrays of structures of eight floats.
#include <cuda_runtime.h>

__global__ void particles(float* state, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  state[8 * i + 0] += state[8 * i + 3] * dt;
  state[8 * i + 1] += state[8 * i + 4] * dt;
  state[8 * i + 2] += state[8 * i + 5] * dt;
  state[8 * i + 5] -= 9.81 * dt;
}

int main() {
  const int n = 1 << 19;
  float* state;
  cudaMalloc(&state, n * 8 * sizeof(float));
  particles<<<(n + 255) / 256, 256>>>(state, 0.01f, n);
  cudaDeviceSynchronize();
  return 0;
}
