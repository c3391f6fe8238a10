// Weight update of a layer (as Rodinia's backprop), indices with a column of bias.
#include <cuda_runtime.h>

#define ETA 0.3f
#define MOMENTUM 0.3f
#define HEIGHT 16
#define WIDTH 16

__global__ void bpnn_adjust_weights_cuda(float* delta, int hid, float* ly, int in, float* w,
                                         float* oldw) {
  int by = blockIdx.y;
  int tx = threadIdx.x;
  int ty = threadIdx.y;

  int index = (hid + 1) * HEIGHT * by + (hid + 1) * ty + tx + 1 + (hid + 1);
  int index_y = HEIGHT * by + ty + 1;
  int index_x = tx + 1;

  w[index] += ((ETA * delta[index_x] * ly[index_y]) + (MOMENTUM * oldw[index]));
  oldw[index] = ((ETA * delta[index_x] * ly[index_y]) + (MOMENTUM * oldw[index]));
}

int main() {
  int in = 65536, hid = 16;
  float *delta, *ly, *w, *oldw;
  cudaMalloc((void**)&delta, (hid + 1) * sizeof(float));
  cudaMalloc((void**)&ly, (in + 1) * sizeof(float));
  cudaMalloc((void**)&w, (in + 1) * (hid + 1) * sizeof(float));
  cudaMalloc((void**)&oldw, (in + 1) * (hid + 1) * sizeof(float));
  dim3 grid(1, in / 16);
  dim3 threads(16, 16);
  bpnn_adjust_weights_cuda<<<grid, threads>>>(delta, hid, ly, in, w, oldw);
  cudaDeviceSynchronize();
  return 0;
}
