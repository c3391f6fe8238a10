// Exchange between the CLUSTER blocks of a cluster: each block sends VALUES values to the others.
// An exchange writes into a mailbox in the shared memory of every receiver; MAILBOXES mailboxes are
// used in turn. An mbarrier per mailbox counts the bytes that arrive. A cluster barrier with
// release and acquire would wait for the stores of whole rows instead, thread by thread.
// A block that sends into a mailbox again has received what the others sent after they had read it,
// so that nothing is overwritten too early. BY_VALUE orders a mailbox as [value][block], else as
// [block][value]. NUMBER tells several kinds of exchange of one kernel apart.
template <int NUMBER>
DEVICE unsigned arrivals(unsigned turn) {
  __shared__ unsigned long long barrier[MAILBOXES];
  return shared_address(&barrier[turn % MAILBOXES]);
}
template <int NUMBER, int VALUES, class T>
DEVICE InWords<T>* mailbox(unsigned turn) {
  __shared__ __align__(16) unsigned mailboxes[MAILBOXES][CLUSTER * VALUES * InWords<T>::COUNT];
  return (InWords<T>*)mailboxes[turn % MAILBOXES];
}
/// Called before the first exchange.
template <int... NUMBERS>
DEVICE void enter_cluster() {
  if (threadIdx.x < MAILBOXES) (make_barrier(arrivals<NUMBERS>(threadIdx.x), 1), ...);
  if (threadIdx.x < MAILBOXES) fence_barriers();
  wait_for_cluster();
}
/// Sends COUNT values, the first of which has the number `first`, to block `to`. Thread 0 also
/// states how many bytes the own mailbox expects.
template <int NUMBER, int VALUES, int COUNT, class T>
DEVICE void send(const T (&values)[COUNT], unsigned turn, int first, int to) {
  if (threadIdx.x == 0)
    expect_bytes(arrivals<NUMBER>(turn), CLUSTER * VALUES * InWords<T>::COUNT * 4);
  if (to >= CLUSTER) return;
  const unsigned barrier = at_rank(arrivals<NUMBER>(turn), to);
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const InWords<T> words = {values[i]};
    const int rank = blockIdx.x % CLUSTER, value = first + i;
    const InWords<T>* const here = mailbox<NUMBER, VALUES, T>(turn) +
                                   (BY_VALUE ? value * CLUSTER + rank : rank * VALUES + value);
    const unsigned there = at_rank(shared_address(here), to);
#pragma unroll
    for (int j = 0; j < InWords<T>::COUNT; ++j)
      asm volatile(
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(there +
                                                                                            4 * j),
          "r"(words.word[j]), "r"(barrier)
          : "memory");
  }
}
/// Waits until the values of all blocks have arrived.
template <int NUMBER, int VALUES, class T>
DEVICE const InWords<T>* receive(unsigned turn) {
  await(arrivals<NUMBER>(turn), turn / MAILBOXES & 1);
  return mailbox<NUMBER, VALUES, T>(turn);
}
