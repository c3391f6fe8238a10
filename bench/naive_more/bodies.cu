// Particles as structures, moved by a step.
#include <cuda_runtime.h>
typedef struct { float x, y, z, vx, vy, vz; } Body;

__global__ void move(Body* p, int n, float dt) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) {
    p[i].x += p[i].vx * dt;
    p[i].y += p[i].vy * dt;
    p[i].z += p[i].vz * dt;
  }
}

int main() {
  const int n = 1 << 20;
  Body* p;
  cudaMalloc(&p, n * sizeof(Body));
  move<<<(n + 255) / 256, 256>>>(p, n, 0.01f);
  cudaDeviceSynchronize();
  return 0;
}
