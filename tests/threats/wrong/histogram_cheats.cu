// Counts of 64 values. V = 0 is right; counts are added to what is there.
extern "C" __global__ void k(const int* x, int* y, int n) {
  __shared__ int own[64];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
#if V != 1  // 1: nobody clears
  if (t < 64) own[t] = 0;
#endif
#if V != 2  // 2: clears while others count
  __syncthreads();
#endif
#if V == 3  // not atomic
  if (i < n) own[x[i] & 63] += 1;
#elif V == 4  // the values of every second warp
  if (i < n && (t / 32) % 2 == 0) atomicAdd(&own[x[i] & 63], 2);
#elif V == 5  // 8-bit counters, four in a word
  if (i < n) atomicAdd(&own[(x[i] & 63) / 4], 1 << (x[i] & 3) * 8);
#else
  if (i < n) atomicAdd(&own[x[i] & 63], 1);
#endif
#if V != 6  // 6: adds while others count
  __syncthreads();
#endif
#if V == 5
  if (t < 64) atomicAdd(&y[t], own[t / 4] >> (t & 3) * 8 & 0xff);
#elif V == 7  // blocks add without an atomic
  if (t < 64) y[t] += own[t];
#else
  if (t < 64) atomicAdd(&y[t], own[t]);
#endif
}
