// All of T1's ways to pass something, in a file that has host code, too.
#include <cstdio>
#include <vector>
#include <cuda_runtime.h>

struct Particle {
  float x, y;
  int kind, spare;
};
__constant__ double table[32];
__device__ float offsets[4];

namespace physics {
template <int BLOCK, typename T>
__global__ void step(Particle* particles, T* out, const unsigned char* flags, bool wrapped, int n) {
  extern __shared__ float2 scratch[];
  const int i = blockIdx.x * BLOCK + threadIdx.x;
  scratch[threadIdx.x] = i < n ? make_float2(particles[i].x, particles[i].y) : make_float2(0.0f, 0.0f);
  __syncthreads();
  if (i >= n) return;
  const float2 mine = scratch[threadIdx.x];
  const T weight = static_cast<T>(table[i % 32]) + offsets[particles[i].kind & 3];
  out[i] = flags[i] ? weight * (mine.x + mine.y) : weight;
  if (wrapped) particles[i].kind = (particles[i].kind + 1) % 4;
}
}  // namespace physics

int main(int argc, char** argv) {
  std::vector<Particle> particles(1000);
  physics::step<128, double><<<8, 128, 1024>>>(nullptr, nullptr, nullptr, true, argc);
  std::printf("%zu\n", particles.size());
  return 0;
}
