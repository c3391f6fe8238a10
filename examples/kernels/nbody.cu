// One time step of gravitating bodies, all pairs. Positions and velocities come twice: as an array
// of structures and as a structure of arrays with equal contents. USE_SOA selects one. A thread
// computes OUTER_UNROLL_FACTOR bodies. nbody.json lists the parameters.
#if INNER_UNROLL_FACTOR1
#define UNROLL_TILES _Pragma("unroll INNER_UNROLL_FACTOR1")
#else
#define UNROLL_TILES
#endif

struct Bodies {
  const float4* together;
  const float *x, *y, *z, *w;
  __device__ float4 At(int i) const {
#if USE_SOA
    return make_float4(x[i], y[i], z[i], w == nullptr ? 0.0f : w[i]);
#else
    return together[i];
#endif
  }
};

__device__ __forceinline__ void Attract(float3& pull, float4 body, float4 other, float softening) {
  const float dx = other.x - body.x, dy = other.y - body.y, dz = other.z - body.z;
  const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
  const float weight = other.w * inverse * inverse * inverse;
  pull.x += dx * weight;
  pull.y += dy * weight;
  pull.z += dz * weight;
}

extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    nbody_kernel(float time, const float4* old_bodies, const float* old_x, const float* old_y, const float* old_z,
                 const float* mass, float4* new_bodies, const float4* old_velocities, const float* old_vx,
                 const float* old_vy, const float* old_vz, float4* new_velocities, float damping, float softening, int n) {
  const Bodies bodies = {old_bodies, old_x, old_y, old_z, mass};
  const Bodies velocities = {old_velocities, old_vx, old_vy, old_vz, nullptr};
  const int first = blockIdx.x * BLOCK_SIZE * OUTER_UNROLL_FACTOR + threadIdx.x;
  float4 mine[OUTER_UNROLL_FACTOR];
  float3 pull[OUTER_UNROLL_FACTOR];
#pragma unroll
  for (int k = 0; k < OUTER_UNROLL_FACTOR; ++k) {
    const int i = first + k * BLOCK_SIZE;
    mine[k] = bodies.At(i < n ? i : n - 1);
    pull[k] = make_float3(0.0f, 0.0f, 0.0f);
  }
#if LOCAL_MEM
  __shared__ float4 tile[BLOCK_SIZE];
  for (int j0 = 0; j0 < n; j0 += BLOCK_SIZE) {
    __syncthreads();
    // Bodies past the end have no mass.
    tile[threadIdx.x] = j0 + threadIdx.x < n ? bodies.At(j0 + threadIdx.x) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();
    UNROLL_TILES
    for (int j = 0; j < BLOCK_SIZE; ++j) {
      const float4 other = tile[j];
#else
  {
    UNROLL_TILES
    for (int j = 0; j < n; ++j) {
      const float4 other = bodies.At(j);
#endif
#if INNER_UNROLL_FACTOR2
#pragma unroll INNER_UNROLL_FACTOR2
#endif
      for (int k = 0; k < OUTER_UNROLL_FACTOR; ++k) Attract(pull[k], mine[k], other, softening);
    }
  }
#pragma unroll
  for (int k = 0; k < OUTER_UNROLL_FACTOR; ++k) {
    const int i = first + k * BLOCK_SIZE;
    if (i >= n) continue;
    const float4 velocity = velocities.At(i);
    const float half = 0.5f * time * time;
    new_bodies[i] = make_float4(mine[k].x + time * velocity.x + half * pull[k].x,
                                mine[k].y + time * velocity.y + half * pull[k].y,
                                mine[k].z + time * velocity.z + half * pull[k].z, mine[k].w);
    new_velocities[i] = make_float4(damping * velocity.x + time * pull[k].x, damping * velocity.y + time * pull[k].y,
                                    damping * velocity.z + time * pull[k].z, 0.0f);
  }
}
