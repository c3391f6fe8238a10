// Box blur of an image of bytes; the window is clipped at the border.
#include <cuda_runtime.h>

#define BLUR_SIZE 2

__global__ void blurKernel(unsigned char* in, unsigned char* out, int w, int h) {
  int Col = blockIdx.x * blockDim.x + threadIdx.x;
  int Row = blockIdx.y * blockDim.y + threadIdx.y;
  if (Col < w && Row < h) {
    int pixVal = 0;
    int pixels = 0;
    for (int blurRow = -BLUR_SIZE; blurRow < BLUR_SIZE + 1; ++blurRow) {
      for (int blurCol = -BLUR_SIZE; blurCol < BLUR_SIZE + 1; ++blurCol) {
        int curRow = Row + blurRow;
        int curCol = Col + blurCol;
        if (curRow > -1 && curRow < h && curCol > -1 && curCol < w) {
          pixVal += in[curRow * w + curCol];
          pixels++;
        }
      }
    }
    out[Row * w + Col] = (unsigned char)(pixVal / pixels);
  }
}

int main() {
  int w = 1024, h = 768;
  unsigned char *in, *out;
  cudaMalloc(&in, w * h);
  cudaMalloc(&out, w * h);
  dim3 block(16, 16, 1), grid((w + 15) / 16, (h + 15) / 16, 1);
  blurKernel<<<grid, block>>>(in, out, w, h);
  cudaDeviceSynchronize();
  return 0;
}
