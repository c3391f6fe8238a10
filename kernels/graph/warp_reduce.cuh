/// Combines each of N values over LANES neighbouring threads of a warp; all of them get the
/// results.
template <class Op, int LANES, int N, class T>
DEVICE void warp_reduce(T (&values)[N]) {
#pragma unroll
  for (int offset = LANES / 2; offset > 0; offset /= 2) {
#pragma unroll
    for (int i = 0; i < N; ++i)
      values[i] = Op::of(values[i], (T)__shfl_xor_sync(0xffffffffu, values[i], offset));
  }
}
