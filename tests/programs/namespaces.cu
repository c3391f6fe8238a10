// The same kernel name in two namespaces, a kernel in an anonymous namespace, a static one, and an
// overloaded one.
#include <cstdio>
#include <vector>

namespace image {
__global__ void scale(float* v, float f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] *= f;
}
}  // namespace image
namespace audio {
constexpr int kGain = 3;
__global__ void scale(short* v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] = v[i] * kGain;
}
}  // namespace audio
namespace {
__global__ void offset(float* v, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] += by;
}
}  // namespace
static __global__ void negate(float* v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] = -v[i];
}
static __global__ void negate(short* v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] = -v[i];
}

int main() {
  const int n = 9000, blocks = (n + 127) / 128;
  std::vector<float> floats(n);
  std::vector<short> shorts(n);
  for (int i = 0; i < n; ++i) {
    floats[i] = i % 15;
    shorts[i] = i % 40;
  }
  float* f;
  short* s;
  cudaMalloc(&f, n * sizeof(float));
  cudaMalloc(&s, n * sizeof(short));
  cudaMemcpy(f, floats.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(s, shorts.data(), n * sizeof(short), cudaMemcpyHostToDevice);
  image::scale<<<blocks, 128>>>(f, 1.5f, n);
  audio::scale<<<blocks, 128>>>(s, n);
  offset<<<blocks, 128>>>(f, 2.0f, n);
  negate<<<blocks, 128>>>(f, n);
  negate<<<blocks, 128>>>(s, n);
  cudaMemcpy(floats.data(), f, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(shorts.data(), s, n * sizeof(short), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += floats[i] + shorts[i];
  printf("sum %.1f\n", sum);
  cudaFree(f);
  cudaFree(s);
}
