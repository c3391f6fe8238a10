// Largest of 2 x 2 pixels, a thread for each result; channels last.
#include <cuda_runtime.h>

__global__ void maxpool(const float* in, float* out, int h, int w, int c) {
  int oy = blockIdx.x * blockDim.x + threadIdx.x;
  int ox = blockIdx.y * blockDim.y + threadIdx.y;
  int ch = blockIdx.z;
  int oh = h / 2, ow = w / 2;
  if (oy >= oh || ox >= ow) return;
  float best = -1e30f;
  for (int dy = 0; dy < 2; dy++)
    for (int dx = 0; dx < 2; dx++)
      best = fmaxf(best, in[ch * h * w + (oy * 2 + dy) * w + ox * 2 + dx]);
  out[ch * oh * ow + oy * ow + ox] = best;
}

int main() {
  const int h = 512, w = 512, c = 32;
  float *in, *out;
  cudaMalloc(&in, c * h * w * sizeof(float));
  cudaMalloc(&out, c * h * w / 4 * sizeof(float));
  maxpool<<<dim3(h / 32, w / 32, c), dim3(16, 16)>>>(in, out, h, w, c);
  cudaDeviceSynchronize();
  return 0;
}
