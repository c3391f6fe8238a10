// A convolution layer of 3 x 3, 16 channels in and 32 out; one thread a result.
#include <cuda_runtime.h>

__global__ void conv_layer(const float* x, const float* w, float* y, int C, int M, int H, int W) {
  int m = blockIdx.z;
  int h = blockIdx.y * blockDim.y + threadIdx.y;
  int wo = blockIdx.x * blockDim.x + threadIdx.x;
  int H_out = H - 2, W_out = W - 2;
  if (h >= H_out || wo >= W_out) return;
  float acc = 0.0f;
  for (int c = 0; c < C; c++)
    for (int p = 0; p < 3; p++)
      for (int q = 0; q < 3; q++)
        acc += x[c * H * W + (h + p) * W + (wo + q)] * w[m * C * 9 + c * 9 + p * 3 + q];
  y[m * H_out * W_out + h * W_out + wo] = acc;
}

int main() {
  const int C = 16, M = 32, H = 130, W = 130;
  float *x, *w, *y;
  cudaMalloc(&x, C * H * W * sizeof(float));
  cudaMalloc(&w, M * C * 9 * sizeof(float));
  cudaMalloc(&y, M * 128 * 128 * sizeof(float));
  conv_layer<<<dim3(8, 8, M), dim3(16, 16)>>>(x, w, y, C, M, H, W);
  cudaDeviceSynchronize();
  return 0;
}
