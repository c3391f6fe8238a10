// What the blocks of a cluster, CLUSTER of them, tell each other, MINE values each. Of each
// exchange, which has a number, what all have to tell arrives in boxes of everybody's shared
// memory, BOXES that take turns; a barrier counts the bytes of each: a release and acquire of the
// cluster's order would wait for the stores of whole rows, thread by thread. Who sends into a box
// again has received what the others sent after they had read it. BY_VALUE: what all say of one
// value lies together, else what one says of all.
template <int NUMBER>
DEVICE unsigned arrivals(unsigned turn) {
  __shared__ unsigned long long barrier[BOXES];
  return shared_address(&barrier[turn % BOXES]);
}
template <int NUMBER, int MINE, class T>
DEVICE InWords<T>* box(unsigned turn) {
  __shared__ __align__(16) unsigned boxes[BOXES][CLUSTER * MINE * InWords<T>::COUNT];
  return (InWords<T>*)boxes[turn % BOXES];
}
/// Before blocks may speak to each other.
template <int... NUMBERS>
DEVICE void enter_cluster() {
  if (threadIdx.x < BOXES) (make_barrier(arrivals<NUMBERS>(threadIdx.x), 1), ...);
  if (threadIdx.x < BOXES) show_barriers();
  wait_for_cluster();
}
/// Some threads tell block `to` COUNT of the values, from the `first` on.
template <int NUMBER, int MINE, int COUNT, class T>
DEVICE void tell(const T (&values)[COUNT], unsigned turn, int first, int to) {
  if (threadIdx.x == 0)
    expect_bytes(arrivals<NUMBER>(turn), CLUSTER * MINE * InWords<T>::COUNT * 4);
  if (to >= CLUSTER) return;
  const unsigned barrier = at_rank(arrivals<NUMBER>(turn), to);
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const InWords<T> told = {values[i]};
    const int rank = blockIdx.x % CLUSTER, value = first + i;
    const InWords<T>* const here = box<NUMBER, MINE, T>(turn) +
                                   (BY_VALUE ? value * CLUSTER + rank : rank * MINE + value);
    const unsigned there = at_rank(shared_address(here), to);
#pragma unroll
    for (int j = 0; j < InWords<T>::COUNT; ++j)
      asm volatile(
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(there +
                                                                                            4 * j),
          "r"(told.word[j]), "r"(barrier)
          : "memory");
  }
}
/// The values of all blocks, when they have come.
template <int NUMBER, int MINE, class T>
DEVICE const InWords<T>* told(unsigned turn) {
  await(arrivals<NUMBER>(turn), turn / BOXES & 1);
  return box<NUMBER, MINE, T>(turn);
}
