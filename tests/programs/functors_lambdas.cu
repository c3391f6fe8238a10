// A kernel template that takes functors and device lambdas, as in portable frameworks: for_each and
// transform.
#include <cstdio>
#include <vector>

template <typename F>
__global__ void for_each(int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) f(i);
}

template <typename F>
void Launch(int n, F f) {
  for_each<<<(n + 127) / 128, 128>>>(n, f);
}

struct Saxpy {
  float a;
  const float* x;
  float* y;
  __device__ void operator()(int i) const { y[i] += a * x[i]; }
};

int main() {
  const int n = 16000;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 21;
  float *x, *y;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMemcpy(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  Launch(n, [=] __device__(int i) { y[i] = x[i] * x[i]; });
  Launch(n, Saxpy{2.0f, x, y});
  Launch(n, [=] __device__(int i) { y[i] = y[i] > 100 ? 100 : y[i]; });
  cudaMemcpy(host.data(), y, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : host) sum += v;
  printf("sum %.1f\n", sum);
  cudaFree(x);
  cudaFree(y);
}
