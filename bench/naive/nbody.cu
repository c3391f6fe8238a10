// Accelerations of bodies that attract each other; one thread a body.
#include <cuda_runtime.h>

__global__ void nbody(float4* acceleration, const float4* body, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 me = body[i];
  float ax = 0, ay = 0, az = 0;
  for (int j = 0; j < n; ++j) {
    float4 other = body[j];
    float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
    float d2 = dx * dx + dy * dy + dz * dz + 0.01;
    float inverse = 1.0 / sqrt(d2);
    float weight = other.w * inverse * inverse * inverse;
    ax += dx * weight;
    ay += dy * weight;
    az += dz * weight;
  }
  acceleration[i] = make_float4(ax, ay, az, 0);
}

int main() {
  const int n = 8192;
  float4 *acceleration, *body;
  cudaMalloc(&acceleration, n * sizeof(float4));
  cudaMalloc(&body, n * sizeof(float4));
  nbody<<<(n + 127) / 128, 128>>>(acceleration, body, n);
  cudaDeviceSynchronize();
  return 0;
}
