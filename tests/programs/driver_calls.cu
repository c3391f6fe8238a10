// A program of the driver API: its kernels have C names and are launched by cuLaunchKernel.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

extern "C" __global__ void axpy(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void clip(float* y, float low, float high, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    y[i] = fminf(fmaxf(y[i], low), high);
}

int main() {
  int n = 30000;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = i % 100;
  cudaSetDevice(0);
  cudaFree(nullptr);
  cudaFunction_t axpy_function, clip_function;
  cudaGetFuncBySymbol(&axpy_function, (const void*)axpy);
  cudaGetFuncBySymbol(&clip_function, (const void*)clip);
  CUdeviceptr x, y;
  cuMemAlloc(&x, n * sizeof(float));
  cuMemAlloc(&y, n * sizeof(float));
  cuMemcpyHtoD(x, host.data(), n * sizeof(float));
  cuMemsetD32(y, 0, n);
  float a = 1.5f, low = 3, high = 90;
  void* axpy_args[] = {&y, &x, &a, &n};
  void* clip_args[] = {&y, &low, &high, &n};
  cuLaunchKernel(axpy_function, (n + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, axpy_args, nullptr);
  cuLaunchKernel(clip_function, 40, 1, 1, 128, 1, 1, 0, nullptr, clip_args, nullptr);
  cuCtxSynchronize();
  cuMemcpyDtoH(host.data(), y, n * sizeof(float));
  double sum = 0;
  for (float v : host) sum += v;
  printf("sum %.2f\n", sum);
  cuMemFree(x);
  cuMemFree(y);
}
