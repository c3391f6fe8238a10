// Sums blocks of BLOCK * ITEMS * VECTOR elements; ALL: one block sums everything.
template <int VECTOR> struct Packed { float v[VECTOR]; };
template <> struct alignas(16) Packed<4> { float v[4]; };

template <int BLOCK, int ITEMS, int VECTOR, bool ALL = false>
__global__ void __launch_bounds__(BLOCK) reduce_blocks(const float* x, float* out, int n) {
  __shared__ float sums[BLOCK / 32];
  float sum = 0;
  const int chunk = BLOCK * ITEMS * VECTOR;
  for (int first = blockIdx.x * chunk; first < n; first += ALL ? chunk : n) {
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
      const int at = first + (item * BLOCK + threadIdx.x) * VECTOR;
      if (at + VECTOR <= n) {
        const Packed<VECTOR> packed = *reinterpret_cast<const Packed<VECTOR>*>(x + at);
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) sum += packed.v[v];
      } else {
        for (int i = at; i < n; ++i) sum += x[i];
      }
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < BLOCK / 32; ++warp) sum += sums[warp];
    out[blockIdx.x] = sum;
  }
}
