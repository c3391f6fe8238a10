// Reductions over the threads of a block that share a row: THREADS_PER_ROW for each of
// ROWS_PER_BLOCK.
constexpr int BLOCK = THREADS_PER_ROW * ROWS_PER_BLOCK;
constexpr int WARPS_PER_ROW = THREADS_PER_ROW > 32 ? THREADS_PER_ROW / 32 : 1;

/// The same over the threads of a row. `slot` alternates between two areas of shared memory, so
/// that one barrier is enough.
template <class Op, int N, class T>
DEVICE void row_reduce(T (&values)[N], int& slot) {
  warp_reduce<Op, (THREADS_PER_ROW < 32 ? THREADS_PER_ROW : 32)>(values);
  if (WARPS_PER_ROW == 1) return;
  __shared__ __align__(16) T part[2][ROWS_PER_BLOCK][N][WARPS_PER_ROW];
  slot ^= 1;
  const int row = threadIdx.x / THREADS_PER_ROW;
  const int thread = threadIdx.x % THREADS_PER_ROW;
#pragma unroll
  for (int i = 0; i < N && thread % 32 == 0; ++i) part[slot][row][i][thread / 32] = values[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = tree<Op, WARPS_PER_ROW>(part[slot][row][i]);
}
template <class Op, class T>
DEVICE T row_reduce(T value, int& slot) {
  T values[1] = {value};
  row_reduce<Op>(values, slot);
  return values[0];
}
