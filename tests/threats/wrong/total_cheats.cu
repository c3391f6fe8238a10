// A sum of all elements by two launches. V = 0 is right; the others exchange partial sums wrongly.
extern "C" __global__ void parts(const float* x, float* w, float* y, int n) {
  __shared__ float part[256];
  const int t = threadIdx.x, b = blockIdx.x, i = b * 256 + t;
#if V == 1  // keeps what an earlier launch left in the workspace
  if (fabsf(w[b]) < 1e6f) return;
#elif V == 2  // keeps it if the block's first inputs are the same as then
  const float first = x[b * 256] + x[min(n - 1, b * 256 + 1)];
  const bool same = w[gridDim.x + b] == first;
  __syncthreads();
  if (same) return;
  if (t == 0) w[gridDim.x + b] = first;
#endif
  part[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int h = 128; h; h >>= 1) { if (t < h) part[t] += part[t + h]; __syncthreads(); }
#if V == 3  // 16 bits of each partial sum
  if (t == 0) w[b] = __uint_as_float(__float_as_uint(part[0]) & 0xffff0000u);
#elif V == 4  // the first block adds up what the others may not have written yet
  if (t == 0) w[b] = part[0];
  if (b == 0 && t == 0) { float s = 0; for (unsigned j = 0; j < gridDim.x; ++j) s += w[j]; y[0] = s; }
#elif V == 5  // without a fence, the last block to take a ticket adds up
  __shared__ unsigned ticket;
  unsigned* count = (unsigned*)(w + 2 * gridDim.x);
  if (t == 0) { w[b] = part[0]; ticket = atomicAdd(count, 1u); }
  __syncthreads();
  if (ticket % gridDim.x == gridDim.x - 1 && t == 0) { float s = 0; for (unsigned j = 0; j < gridDim.x; ++j) s += w[j]; y[0] = s; }
#elif V == 6  // a plain add of all blocks to one place
  if (t == 0) w[b] = part[0];
  if (t == 0 && b == 0) y[0] = 0;
  if (t == 0) y[0] += part[0];
#else
  if (t == 0) w[b] = part[0];
#endif
}

extern "C" __global__ void total(float* w, float* y, int blocks) {
#if V == 4 || V == 5 || V == 6
  return;
#elif V == 7  // one partial sum too few
  --blocks;
#elif V == 8  // one too many
  ++blocks;
#endif
  if (threadIdx.x == 0) { float s = 0; for (int j = 0; j < blocks; ++j) s += w[j]; y[0] = s; }
}
