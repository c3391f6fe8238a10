constexpr int USERS = STRIP < 512 ? STRIP : 512;

/// Calls combine() for every thread of a warp with at >= 0, in the order of threads where several
/// have the same `at`: threads whose indices share a word of `users` take turns. The words are zero
/// before and after.
template <class Combine>
DEVICE void in_order(unsigned* users, int at, const Combine& combine) {
  const unsigned own = 1u << threadIdx.x % 32;
  unsigned* const word = users + max(at, 0) % USERS;
  if (at >= 0) atomicOr(word, own);
  __syncwarp();
  const int turn = at < 0 ? -1 : __popc(*word & (own - 1));
  __syncwarp();
  if (turn == 0) *word = 0;
  for (int t = 0; __any_sync(0xffffffffu, turn >= t); ++t) {
    if (turn == t) combine();
    __syncwarp();
  }
}
