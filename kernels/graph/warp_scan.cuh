/// The combination of the values of a warp's threads up to this one (inclusive scan).
template <class Op, class T>
DEVICE T warp_scan(T value) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const T before = __shfl_up_sync(0xffffffffu, value, offset);
    if (threadIdx.x % 32 >= offset) value = Op::of(before, value);
  }
  return value;
}
