// CUDA samples style: an image is rotated through a texture object with linear filtering, and then
// sharpened from global memory.
#include <cstdio>
#include <vector>

__global__ void rotate(float* out, cudaTextureObject_t image, int width, int height, float angle) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float u = x / (float)width - 0.5f, v = y / (float)height - 0.5f;
  float c = cosf(angle), s = sinf(angle);
  out[y * width + x] = tex2D<float>(image, u * c - v * s + 0.5f, v * c + u * s + 0.5f);
}

__global__ void sharpen(float* out, const float* in, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  int i = y * width + x;
  out[i] = 5 * in[i] - in[i - 1] - in[i + 1] - in[i - width] - in[i + width];
}

int main() {
  const int width = 128, height = 64;
  std::vector<float> host(width * height);
  for (int i = 0; i < width * height; ++i) host[i] = (i * 13 % 101) / 101.0f;
  cudaArray_t array;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMallocArray(&array, &format, width, height);
  cudaMemcpy2DToArray(array, 0, 0, host.data(), width * sizeof(float), width * sizeof(float),
                      height, cudaMemcpyHostToDevice);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeWrap;
  how.filterMode = cudaFilterModeLinear;
  how.readMode = cudaReadModeElementType;
  how.normalizedCoords = 1;
  cudaTextureObject_t texture;
  cudaCreateTextureObject(&texture, &resource, &how, nullptr);
  float *rotated, *out;
  cudaMalloc(&rotated, host.size() * sizeof(float));
  cudaMalloc(&out, host.size() * sizeof(float));
  cudaMemset(out, 0, host.size() * sizeof(float));
  dim3 block(16, 8), grid(width / 16, height / 8);
  rotate<<<grid, block>>>(rotated, texture, width, height, 0.5f);
  sharpen<<<grid, block>>>(out, rotated, width, height);
  cudaMemcpy(host.data(), out, host.size() * sizeof(float), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (float v : host) sum += v;
  printf("sum %.2f\n", sum);
  cudaDestroyTextureObject(texture);
  cudaFreeArray(array);
  cudaFree(rotated);
  cudaFree(out);
}
