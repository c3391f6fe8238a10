// Second step of a split over k: the shares of [m, n] are added in order, so that every run gives the same bits.
extern "C" __global__ void __launch_bounds__(256) add_shares(const float* __restrict__ shares, T* __restrict__ c, long long elements) {
  const long long stride = (long long)gridDim.x * 256 * 4;
  for (long long at = ((long long)blockIdx.x * 256 + threadIdx.x) * 4; at < elements; at += stride) {
    if (elements % 4 == 0) {
      float4 sum = *(const float4*)(shares + at);
#pragma unroll
      for (int s = 1; s < SPLIT_K; ++s) {
        const float4 share = *(const float4*)(shares + s * elements + at);
        sum.x += share.x;
        sum.y += share.y;
        sum.z += share.z;
        sum.w += share.w;
      }
      c[at] = T(sum.x);
      c[at + 1] = T(sum.y);
      c[at + 2] = T(sum.z);
      c[at + 3] = T(sum.w);
    } else {
      for (int e = 0; e < 4 && at + e < elements; ++e) {
        float sum = shares[at + e];
        for (int s = 1; s < SPLIT_K; ++s) sum += shares[s * elements + at + e];
        c[at + e] = T(sum);
      }
    }
  }
}
