// CUDA samples style: gravitation of bodies as float4 in tiles of dynamic shared memory. Positions
// and velocities change in place over a few steps.
#include <cstdio>
#include <cstdlib>
#include <vector>

__device__ float3 attraction(float3 a, float4 me, float4 other) {
  float3 r = make_float3(other.x - me.x, other.y - me.y, other.z - me.z);
  float d = r.x * r.x + r.y * r.y + r.z * r.z + 0.01f;
  float inverse = rsqrtf(d);
  float s = other.w * inverse * inverse * inverse;
  return make_float3(a.x + r.x * s, a.y + r.y * s, a.z + r.z * s);
}

__global__ void accelerate(const float4* bodies, float3* velocities, float dt, int n) {
  extern __shared__ float4 tile[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = bodies[i];
  float3 a = make_float3(0, 0, 0);
  for (int base = 0; base < n; base += blockDim.x) {
    tile[threadIdx.x] = bodies[base + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < blockDim.x; ++j) a = attraction(a, me, tile[j]);
    __syncthreads();
  }
  velocities[i].x += a.x * dt;
  velocities[i].y += a.y * dt;
  velocities[i].z += a.z * dt;
}

__global__ void move(float4* bodies, const float3* velocities, float dt, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bodies[i].x += velocities[i].x * dt;
  bodies[i].y += velocities[i].y * dt;
  bodies[i].z += velocities[i].z * dt;
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 512;
  std::vector<float4> host(n);
  for (int i = 0; i < n; ++i)
    host[i] = make_float4(i % 17, (i * 5) % 23, (i * 11) % 29, 1.0f + i % 3);
  float4* bodies;
  float3* velocities;
  cudaMalloc(&bodies, n * sizeof(float4));
  cudaMalloc(&velocities, n * sizeof(float3));
  cudaMemcpy(bodies, host.data(), n * sizeof(float4), cudaMemcpyHostToDevice);
  cudaMemset(velocities, 0, n * sizeof(float3));
  for (int step = 0; step < 3; ++step) {
    accelerate<<<n / 128, 128, 128 * sizeof(float4)>>>(bodies, velocities, 0.001f, n);
    move<<<n / 128, 128>>>(bodies, velocities, 0.001f, n);
  }
  cudaMemcpy(host.data(), bodies, n * sizeof(float4), cudaMemcpyDeviceToHost);
  double sum = 0;
  for (const float4& b : host) sum += b.x + b.y + b.z;
  printf("sum %.2f\n", sum);
  cudaFree(bodies);
  cudaFree(velocities);
}
