// What the blocks of a cluster, SPLITS of them, find about the strip that they share. Of each reduction, which has a number,
// every block's part arrives in boxes of the others' shared memory, two that take turns; a barrier counts the bytes of each.
// Who sends into a box again has received what the others sent after they had read it.
template <int REDUCTION> DEVICE unsigned arrivals(int turn) {
  __shared__ unsigned long long barrier[2];
  return (unsigned)__cvta_generic_to_shared(&barrier[turn & 1]);
}
template <int REDUCTION, class T> DEVICE InWords<T>* box(int turn) {
  __shared__ InWords<T> boxes[2][SPLITS * KEPT_THREADS * LANES];
  return boxes[turn & 1];
}
/// Before blocks may speak to each other.
template <int... REDUCTIONS> DEVICE void enter_cluster() {
  if (threadIdx.x < 2) (make_barrier(arrivals<REDUCTIONS>(threadIdx.x), 1), ...);
  if (threadIdx.x < 2) show_barriers();
  wait_for_cluster();
}
/// All threads know the block's part, each tells it to one block.
template <int REDUCTION, class T> DEVICE void tell(const T (&part)[LANES], int turn, int kept_thread, int reduced_thread) {
  constexpr int MINE = KEPT_THREADS * LANES;
  if (threadIdx.x == 0) expect_bytes(arrivals<REDUCTION>(turn), SPLITS * MINE * InWords<T>::COUNT * 4);
  if (reduced_thread >= SPLITS) return;
  const unsigned barrier = at_rank(arrivals<REDUCTION>(turn), reduced_thread);
#pragma unroll
  for (int lane = 0; lane < LANES; ++lane) {
    const InWords<T> told = {part[lane]};
    const InWords<T>* const to = box<REDUCTION, T>(turn) + blockIdx.x * MINE + kept_thread * LANES + lane;
    const unsigned there = at_rank((unsigned)__cvta_generic_to_shared(to), reduced_thread);
#pragma unroll
    for (int i = 0; i < InWords<T>::COUNT; ++i)
      asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(there + 4 * i), "r"(told.word[i]), "r"(barrier) : "memory");
  }
}
/// The parts of all blocks, when they have come.
template <int REDUCTION, class T> DEVICE const InWords<T>* told(int turn) {
  await(arrivals<REDUCTION>(turn), turn >> 1 & 1);
  return box<REDUCTION, T>(turn);
}
