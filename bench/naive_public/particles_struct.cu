// Leap of particles in an array of structures, all of which is passed by pointer.
#include <cuda_runtime.h>

struct Particle {
  float x, y, z, vx, vy, vz, mass, charge;
};

__global__ void step(Particle* p, float dt, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  p[i].x += p[i].vx * dt;
  p[i].y += p[i].vy * dt;
  p[i].z += p[i].vz * dt;
  if (p[i].x < 0 || p[i].x > 1.0) p[i].vx = -p[i].vx;
  if (p[i].y < 0 || p[i].y > 1.0) p[i].vy = -p[i].vy;
  if (p[i].z < 0 || p[i].z > 1.0) p[i].vz = -p[i].vz;
}

int main() {
  const int n = 1 << 19;
  Particle* p;
  cudaMalloc(&p, n * sizeof(Particle));
  step<<<(n + 127) / 128, 128>>>(p, 0.01f, n);
  cudaDeviceSynchronize();
  return 0;
}
