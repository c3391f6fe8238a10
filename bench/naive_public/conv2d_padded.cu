// A convolution layer with zero padding, tested at each tap; NCHW, one image.
#include <cuda_runtime.h>

__global__ void conv2d(const float* input, const float* kernel, float* output, int inC, int outC,
                       int height, int width, int ksize) {
  int ow = blockIdx.x * blockDim.x + threadIdx.x;
  int oh = blockIdx.y * blockDim.y + threadIdx.y;
  int oc = blockIdx.z * blockDim.z + threadIdx.z;
  if (ow < width && oh < height && oc < outC) {
    int pad = ksize / 2;
    float sum = 0;
    for (int ic = 0; ic < inC; ic++) {
      for (int kh = 0; kh < ksize; kh++) {
        for (int kw = 0; kw < ksize; kw++) {
          int ih = oh + kh - pad, iw = ow + kw - pad;
          if (ih >= 0 && ih < height && iw >= 0 && iw < width)
            sum += input[(ic * height + ih) * width + iw] *
                   kernel[((oc * inC + ic) * ksize + kh) * ksize + kw];
        }
      }
    }
    output[(oc * height + oh) * width + ow] = sum;
  }
}

int main() {
  const int inC = 16, outC = 32, height = 64, width = 96, ksize = 3;
  float *input, *kernel, *output;
  cudaMalloc(&input, inC * height * width * sizeof(float));
  cudaMalloc(&kernel, outC * inC * ksize * ksize * sizeof(float));
  cudaMalloc(&output, outC * height * width * sizeof(float));
  dim3 block(16, 16, 1), grid(width / 16, height / 16, outC);
  conv2d<<<grid, block>>>(input, kernel, output, inC, outC, height, width, ksize);
  cudaDeviceSynchronize();
  return 0;
}
