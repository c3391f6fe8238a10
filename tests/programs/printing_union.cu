// A kernel that prints and asserts: its texts are variables that each compiler names anew.
#include <cassert>
#include <cstdio>
#include <vector>

union Bits {
  float value;
  unsigned word;
};

struct Input {
  const float* data;
  int count;
  union {
    float scale;
    int shift;
  };
};

__global__ void round_down(Input input, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(input.data != nullptr);
  if (i >= input.count) return;
  Bits bits;
  bits.value = input.data[i] * input.scale;
  bits.word &= ~1u;
  out[i] = bits.value;
  if (i == 0) printf("scale %.2f of %d\n", input.scale, input.count);
}

int main() {
  constexpr int kCount = 4096;
  std::vector<float> host(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = i;
  float *data, *out;
  cudaMalloc(&data, kCount * sizeof(float));
  cudaMalloc(&out, kCount * sizeof(float));
  cudaMemcpy(data, host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice);
  Input input{};
  input.data = data;
  input.count = kCount;
  input.scale = 1.5f;
  round_down<<<kCount / 256, 256>>>(input, out);
  cudaMemcpy(host.data(), out, kCount * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (const float value : host) sum += value;
  printf("sum %.1f\n", sum);
  return cudaGetLastError() != cudaSuccess;
}
