// How many numbers of the same warp up to this one are positive. V = 0 is right.
extern "C" __global__ void k(const int* x, int* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  const int v = i < n ? x[i] : 0;
  const unsigned votes = __ballot_sync(~0u, v > 0);
  int rank = __popc(votes & (~0u >> (31 - lane)));
#if V == 1  // five bits
  rank &= 31;
#elif V == 2  // a shift by 32 in the last lane
  rank = __popc(votes & ((2u << lane) - 1u)) - (lane == 31 && votes == ~0u);
#elif V == 3  // numbers as floats
  rank = __popc(__ballot_sync(~0u, (float)v > 0.5f && (float)v < 2147483000.0f) & (~0u >> (31 - lane)));
#elif V == 4  // counts of the lower 16 bits
  rank = __popc(__ballot_sync(~0u, (short)v > 0) & (~0u >> (31 - lane)));
#endif
  if (i < n) y[i] = rank;
}
