// A layer of a network: product with the weights of each output, bias, and ReLU.
#include <cuda_runtime.h>

__global__ void linear_relu(const float* x, const float* W, const float* bias, float* y, int batch,
                            int in_features, int out_features) {
  int b = blockIdx.x;
  int o = blockIdx.y * blockDim.x + threadIdx.x;
  if (b >= batch || o >= out_features) return;
  float acc = bias[o];
  for (int i = 0; i < in_features; i++) acc += x[b * in_features + i] * W[o * in_features + i];
  y[b * out_features + o] = acc > 0 ? acc : 0;
}

int main() {
  const int batch = 256, in_features = 784, out_features = 512;
  float *x, *W, *bias, *y;
  cudaMalloc(&x, batch * in_features * sizeof(float));
  cudaMalloc(&W, out_features * in_features * sizeof(float));
  cudaMalloc(&bias, out_features * sizeof(float));
  cudaMalloc(&y, batch * out_features * sizeof(float));
  linear_relu<<<dim3(batch, out_features / 128), 128>>>(x, W, bias, y, batch, in_features,
                                                        out_features);
  cudaDeviceSynchronize();
  return 0;
}
