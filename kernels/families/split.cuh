// Second step of a split over k: the shares of [m, n] are added in a fixed order, so that every run gives the same bits. Of many
// shares each warp adds up a part, so that their loads run side by side.
constexpr int PARTS = SPLIT_K < 16 ? 1 : 8;
constexpr int QUADS = 256 / PARTS;  // groups of four elements that a block adds up at once

__device__ __forceinline__ void add(float4& sum, float4 other) {
  sum.x += other.x;
  sum.y += other.y;
  sum.z += other.z;
  sum.w += other.w;
}

/// Four elements at a time; `count` of them exist, and WHOLE says that there are four, aligned.
template <bool WHOLE>
__device__ __forceinline__ float4 load_share(const float* from, long long count) {
  if (WHOLE) return *(const float4*)from;
  return make_float4(from[0], count > 1 ? from[1] : 0, count > 2 ? from[2] : 0, count > 3 ? from[3] : 0);
}
struct __align__(4 * sizeof(T)) Four {
  T each[4];
};
template <bool WHOLE>
__device__ __forceinline__ void store_sum(T* to, float4 sum, long long count) {
  const Four four = {{T(sum.x), T(sum.y), T(sum.z), T(sum.w)}};
  if (WHOLE) *(Four*)to = four;
  for (int e = 0; !WHOLE && e < 4 && e < count; ++e) to[e] = four.each[e];
}

template <bool WHOLE>
__device__ __forceinline__ void add_all(const float* __restrict__ shares, T* __restrict__ c, long long elements, const Finish& finish) {
  __shared__ float4 sums[PARTS][QUADS];
  const int quad = threadIdx.x % QUADS, part = threadIdx.x / QUADS;
  for (long long first = (long long)blockIdx.x * QUADS * 4; first < elements; first += (long long)gridDim.x * QUADS * 4) {
    const long long at = first + quad * 4, count = elements - at;
    float4 sum = make_float4(0, 0, 0, 0);
    if (count > 0) {
      UNROLLED for (int s = 0; s < SPLIT_K / PARTS; ++s) add(sum, load_share<WHOLE>(shares + (part * (SPLIT_K / PARTS) + s) * elements + at, count));
    }
    if (PARTS > 1) {
      sums[part][quad] = sum;
      __syncthreads();
      for (int p = 1; p < PARTS && part == 0; ++p) add(sum, sums[p][quad]);
      __syncthreads();
    }
    if (part != 0 || count <= 0) continue;
    const long long last = elements - 1;
    sum = make_float4(finish.at(sum.x, at), finish.at(sum.y, min(at + 1, last)), finish.at(sum.z, min(at + 2, last)), finish.at(sum.w, min(at + 3, last)));
    store_sum<WHOLE>(c + at, sum, count);
  }
}

extern "C" __global__ void __launch_bounds__(256) add_shares(const float* __restrict__ shares, T* __restrict__ c, long long elements FINISH_PARAMETERS) {
  if (elements % 4 == 0) {
    add_all<true>(shares, c, elements, FINISH(0));
  } else {
    add_all<false>(shares, c, elements, FINISH(0));
  }
}
