// Bilinear resize of an image.
#include <cuda_runtime.h>

__global__ void bilinear(const float* in, float* out, int iw, int ih, int ow, int oh) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= ow || y >= oh) return;
  float fx = (x + 0.5f) * iw / ow - 0.5f, fy = (y + 0.5f) * ih / oh - 0.5f;
  int x0 = (int)floorf(fx), y0 = (int)floorf(fy);
  float dx = fx - x0, dy = fy - y0;
  int x1 = min(x0 + 1, iw - 1), y1 = min(y0 + 1, ih - 1);
  x0 = max(x0, 0);
  y0 = max(y0, 0);
  out[y * ow + x] = (1 - dy) * ((1 - dx) * in[y0 * iw + x0] + dx * in[y0 * iw + x1]) +
                    dy * ((1 - dx) * in[y1 * iw + x0] + dx * in[y1 * iw + x1]);
}

int main() {
  const int iw = 1024, ih = 1024, ow = 1600, oh = 1600;
  float *in, *out;
  cudaMalloc(&in, iw * ih * sizeof(float));
  cudaMalloc(&out, ow * oh * sizeof(float));
  bilinear<<<dim3((ow + 15) / 16, (oh + 15) / 16), dim3(16, 16)>>>(in, out, iw, ih, ow, oh);
  cudaDeviceSynchronize();
  return 0;
}
