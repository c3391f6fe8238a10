// A step of a thermal simulation (as Rodinia's hotspot, without its pyramid).
#include <cuda_runtime.h>

__global__ void hotspot(const float* temp, const float* power, float* result, int rows, int cols,
                        float cap, float rx, float ry, float rz, float step) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  int c = blockIdx.y * blockDim.y + threadIdx.y;
  const float amb_temp = 80.0;
  if (r >= rows || c >= cols) return;
  int idx = r * cols + c;
  float t = temp[idx];
  float n = r == 0 ? t : temp[idx - cols];
  float s = r == rows - 1 ? t : temp[idx + cols];
  float w = c == 0 ? t : temp[idx - 1];
  float e = c == cols - 1 ? t : temp[idx + 1];
  float delta = (step / cap) * (power[idx] + (s + n - 2.0 * t) / ry + (e + w - 2.0 * t) / rx +
                                (amb_temp - t) / rz);
  result[idx] = t + delta;
}

int main() {
  const int rows = 1024, cols = 1024;
  size_t bytes = rows * cols * sizeof(float);
  float *temp, *power, *result;
  cudaMalloc(&temp, bytes);
  cudaMalloc(&power, bytes);
  cudaMalloc(&result, bytes);
  dim3 threads(16, 16);
  dim3 blocks(rows / 16, cols / 16);
  hotspot<<<blocks, threads>>>(temp, power, result, rows, cols, 0.5f, 2.0f, 3.0f, 4.0f, 0.1f);
  cudaDeviceSynchronize();
  return 0;
}
