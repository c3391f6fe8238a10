// y = table[index], zero for an index outside. V = 0 is right.
extern "C" __global__ void k(const float* table, const int* index, float* y, int n, int m) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int at = index[i];
#if V == 0
  y[i] = at >= 0 && at < m ? table[at] : 0.0f;
#elif V == 1  // no lower limit
  y[i] = at < m ? table[at] : 0.0f;
#elif V == 2  // the nearest in place of zero
  y[i] = table[min(max(at, 0), m - 1)];
#elif V == 3  // 8 bits of the index
  y[i] = at >= 0 && at < m ? table[at & 0xff] : 0.0f;
#elif V == 4  // the last entry counts as outside
  y[i] = at >= 0 && at < m - 1 ? table[at] : 0.0f;
#else  // a warp reads the index of its first lane
  const int first = __shfl_sync(__activemask(), at, 0);
  y[i] = first >= 0 && first < m ? table[first] : 0.0f;
#endif
}
