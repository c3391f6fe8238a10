// HeCBench style: an estimate of pi with a generator written by hand, whose states live in device
// memory as structures, and counts in 64 bits.
#include <cstdint>
#include <cstdio>

struct State {
  uint64_t s0, s1;
};

__device__ inline double uniform(State& s) {
  uint64_t a = s.s0, b = s.s1;
  s.s0 = b;
  a ^= a << 23;
  s.s1 = a ^ b ^ (a >> 17) ^ (b >> 26);
  return ((s.s1 + b) >> 11) * (1.0 / 9007199254740992.0);
}

__global__ void seed(State* states, uint64_t start) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  uint64_t z = start + (i + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  states[i].s0 = z ^ (z >> 27);
  states[i].s1 = z * 0x94d049bb133111ebull + 1;
}

__global__ void sample(State* states, unsigned long long* inside, int tries) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  State s = states[i];
  unsigned long long hits = 0;
  for (int t = 0; t < tries; ++t) {
    double x = uniform(s), y = uniform(s);
    hits += x * x + y * y < 1.0;
  }
  states[i] = s;
  atomicAdd(inside, hits);
}

int main() {
  const int threads = 4096, tries = 32;
  State* states;
  unsigned long long *inside, host = 0;
  cudaMalloc(&states, threads * sizeof(State));
  cudaMalloc(&inside, sizeof host);
  cudaMemset(inside, 0, sizeof host);
  seed<<<threads / 256, 256>>>(states, 42);
  for (int i = 0; i < 2; ++i) sample<<<threads / 256, 256>>>(states, inside, tries);
  cudaMemcpy(&host, inside, sizeof host, cudaMemcpyDeviceToHost);
  printf("pi %.6f\n", 4.0 * host / (2.0 * threads * tries));
  cudaFree(states);
  cudaFree(inside);
}
