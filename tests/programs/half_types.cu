// Half precision in pairs, bfloat16 with a conversion to float, and a softmax over rows of halves.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdio>
#include <vector>

__global__ void axpy_half2(__half2* y, const __half2* x, __half2 a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hfma2(a, x[i], y[i]);
}
__global__ void to_bfloat(__nv_bfloat16* out, const __half* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = __float2bfloat16(__half2float(in[i]) * 3.0f);
}
__global__ void softmax_rows(float* out, const __nv_bfloat16* in, int columns) {
  const __nv_bfloat16* row = in + blockIdx.x * columns;
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += 32) sum += __expf(__bfloat162float(row[i]) * 0.01f);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  for (int i = threadIdx.x; i < columns; i += 32)
    out[blockIdx.x * columns + i] = __expf(__bfloat162float(row[i]) * 0.01f) / sum;
}

int main() {
  const int rows = 64, columns = 128, n = rows * columns;
  std::vector<__half> host(n);
  for (int i = 0; i < n; ++i) host[i] = __float2half((i % 64) * 0.25f);
  __half *x, *y;
  __nv_bfloat16* b;
  float* out;
  cudaMalloc(&x, n * sizeof(__half));
  cudaMalloc(&y, n * sizeof(__half));
  cudaMalloc(&b, n * sizeof(__nv_bfloat16));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemcpy(x, host.data(), n * sizeof(__half), cudaMemcpyHostToDevice);
  cudaMemcpy(y, host.data(), n * sizeof(__half), cudaMemcpyHostToDevice);
  axpy_half2<<<n / 2 / 128, 128>>>((__half2*)y, (const __half2*)x, __float2half2_rn(2.0f), n / 2);
  to_bfloat<<<n / 256, 256>>>(b, y, n);
  softmax_rows<<<rows, 32>>>(out, b, columns);
  std::vector<float> result(n);
  cudaMemcpy(result.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += result[i] * (i % 128);
  printf("sum %.2f\n", sum);
  cudaFree(x);
  cudaFree(y);
  cudaFree(b);
  cudaFree(out);
}
