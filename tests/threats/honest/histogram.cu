// How often each of 16 values occurs in each block's part.
extern "C" __global__ void k(const int* x, int* y, int n) {
  const int t = threadIdx.x;
  const int i = blockIdx.x * 256 + t;
  __shared__ int count[16];
  if (t < 16) count[t] = 0;
  __syncthreads();
#if V == 0
  if (i < n) atomicAdd(&count[x[i] & 15], 1);
#elif V == 1
  if (t < 16) {
    int c = 0;
    for (int j = 0; j < 256; ++j) {
      const int at = blockIdx.x * 256 + j;
      if (at < n && (x[at] & 15) == t) ++c;
    }
    count[t] = c;
  }
#else
  for (int v = 0; v < 16; ++v) {
    const unsigned votes = __ballot_sync(~0u, i < n && (x[i] & 15) == v);
    if (t % 32 == 0) atomicAdd(&count[v], __popc(votes));
  }
#endif
  __syncthreads();
  if (t < 16) y[blockIdx.x * 16 + t] = count[t];
}
