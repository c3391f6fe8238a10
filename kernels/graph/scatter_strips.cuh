/// combine() of every thread of a warp with at >= 0; of those with equal `at` in the order of threads.
template <class Combine> DEVICE void in_order(int at, const Combine& combine) {
  const unsigned same = __match_any_sync(0xffffffffu, at);
  const int turn = at < 0 ? -1 : __popc(same & ((1u << threadIdx.x % 32) - 1));
  for (int t = 0; __any_sync(0xffffffffu, turn >= t); ++t) {
    if (turn == t) combine();
    __syncwarp();
  }
}
