// CUDA samples style: reductions by warp shuffles, as templates over the type, the operation and
// the block.
#include <cstdio>
#include <vector>

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

template <typename T, unsigned BLOCK, typename Op>
__global__ void reduce(const T* in, T* out, unsigned n, Op op) {
  __shared__ T partial[32];
  unsigned i = blockIdx.x * BLOCK + threadIdx.x;
  T value = in[i < n ? i : n - 1];
  for (i += BLOCK * gridDim.x; i < n; i += BLOCK * gridDim.x) value = op(value, in[i]);
  for (int d = 16; d > 0; d /= 2) value = op(value, __shfl_down_sync(~0u, value, d));
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned w = 1; w < BLOCK / 32; ++w) value = op(value, partial[w]);
    out[blockIdx.x] = value;
  }
}

template <typename T, typename Op>
T Reduced(const std::vector<T>& host, Op op) {
  const unsigned blocks = 16;
  T *in, *out, result;
  cudaMalloc(&in, host.size() * sizeof(T));
  cudaMalloc(&out, blocks * sizeof(T));
  cudaMemcpy(in, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  reduce<T, 256, Op><<<blocks, 256>>>(in, out, host.size(), op);
  reduce<T, 32, Op><<<1, 32>>>(out, in, blocks, op);
  cudaMemcpy(&result, in, sizeof(T), cudaMemcpyDeviceToHost);
  cudaFree(in);
  cudaFree(out);
  return result;
}

int main() {
  std::vector<float> floats(1 << 15);
  std::vector<int> ints(1 << 15);
  for (size_t i = 0; i < floats.size(); ++i) {
    floats[i] = (i % 10) * 0.125f;
    ints[i] = (i * 7919) % 100003;
  }
  printf("maxima %.3f %d\n", Reduced(floats, Max()), Reduced(ints, Max()));
}
