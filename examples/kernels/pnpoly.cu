// Tests if points are inside of a polygon: they are if a ray to the right crosses an odd number
// of edges. All methods give equal results: products are rounded explicitly. See pnpoly.json.
#ifndef VERTICES
#define VERTICES 200
#endif

__constant__ float2 d_vertices[VERTICES];

/// True if the edge from height `from` to height `to` crosses the height `y`.
__device__ __forceinline__ bool IsBetween(float from, float to, float y) {
#if between_method == 0
  return (from > y) != (to > y);
#elif between_method == 1
  return (from > y && to <= y) || (from <= y && to > y);
#elif between_method == 2
  return ((from > y) ^ (to > y)) != 0;
#else
  return from > to ? (to <= y && y < from) : (from <= y && y < to);
#endif
}

/// True if the ray from `point` to the right crosses the edge.
__device__ __forceinline__ bool Crosses(float2 from, float2 to, float2 point) {
  const float rise = to.y - from.y;
  const float side = __fmaf_rn(point.x - from.x, rise, -__fmul_rn(to.x - from.x, point.y - from.y));
  return IsBetween(from.y, to.y, point.y) && (rise > 0 ? side < 0 : side > 0);
}

extern "C" __global__ void __launch_bounds__(block_size_x) cn_pnpoly(int* bitmap, const float2* points, int n) {
  const int first = blockIdx.x * block_size_x * tile_size + threadIdx.x;
  if (first >= n) return;
  float2 mine[tile_size];
  int crossings[tile_size];
#pragma unroll
  for (int t = 0; t < tile_size; ++t) {
    // A point past the end repeats the first one; its result is not stored.
    const int at = first + t * block_size_x;
    mine[t] = points[at < n ? at : first];
    crossings[t] = 0;
  }
  float2 from = d_vertices[VERTICES - 1];
  for (int v = 0; v < VERTICES; ++v) {
    const float2 to = d_vertices[v];
#pragma unroll
    for (int t = 0; t < tile_size; ++t) {
#if use_method == 0
      if (Crosses(from, to, mine[t])) crossings[t] = !crossings[t];
#elif use_method == 1
      crossings[t] ^= Crosses(from, to, mine[t]);
#else
      crossings[t] += Crosses(from, to, mine[t]);
#endif
    }
    from = to;
  }
#pragma unroll
  for (int t = 0; t < tile_size; ++t) {
    const int at = first + t * block_size_x;
    if (at < n) bitmap[at] = crossings[t] & 1;
  }
}
