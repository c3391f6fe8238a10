// A step of the Adam optimizer (as in HeCBench).
#include <cuda_runtime.h>

template <typename T>
__global__ void adam(T* p, T* m, T* v, const T* g, const float b1, const float b2, const float eps,
                     const float grad_scale, const float step_size, const size_t tsize,
                     const float decay) {
  const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const size_t totThreads = gridDim.x * blockDim.x;
  for (size_t j = i; j < tsize; j += totThreads) {
    T scaled_grad = g[j] / grad_scale;
    m[j] = b1 * m[j] + (1.f - b1) * scaled_grad;
    v[j] = b2 * v[j] + (1.f - b2) * scaled_grad * scaled_grad;
    float denom = sqrtf(v[j] + eps);
    float update = (m[j] / denom) + (decay * p[j]);
    p[j] -= (step_size * update);
  }
}

int main() {
  const int n = 1 << 20;
  float *p, *m, *v, *g;
  cudaMalloc((void**)&p, n * sizeof(float));
  cudaMalloc((void**)&m, n * sizeof(float));
  cudaMalloc((void**)&v, n * sizeof(float));
  cudaMalloc((void**)&g, n * sizeof(float));
  dim3 grids((n + 255) / 256);
  dim3 blocks(256);
  adam<float><<<grids, blocks>>>(p, m, v, g, 0.9f, 0.999f, 1e-8f, 256.f, 1e-3f, n, 0.5f);
  cudaDeviceSynchronize();
  return 0;
}
