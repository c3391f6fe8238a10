// Permutes NHWC to NCHW, a thread an element of the source.
#include <cuda_runtime.h>

__global__ void nhwc_to_nchw(const float* in, float* out, int N, int H, int W, int C) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= N * H * W * C) return;
  int c = idx % C;
  int w = (idx / C) % W;
  int h = (idx / (C * W)) % H;
  int n = idx / (C * W * H);
  out[((n * C + c) * H + h) * W + w] = in[idx];
}

int main() {
  const int N = 8, H = 64, W = 64, C = 64;
  const int total = N * H * W * C;
  float *in, *out;
  cudaMalloc(&in, total * sizeof(float));
  cudaMalloc(&out, total * sizeof(float));
  nhwc_to_nchw<<<(total + 255) / 256, 256>>>(in, out, N, H, W, C);
  cudaDeviceSynchronize();
  return 0;
}
