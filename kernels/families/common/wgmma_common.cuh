// Hopper's tensor cores, as inline PTX: products of a group of four warps whose operands lie in
// shared memory. They run in the background; their accumulators may not be touched until they are
// waited for.

/// What this thread wrote to shared memory becomes visible to the tensor cores, once a barrier has
/// followed.
DEVICE void show_to_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// Before the first product after accumulators were touched.
DEVICE void start_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most PENDING committed groups are under way.
template <int PENDING>
DEVICE void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
/// After the wait: keeps the compiler from reading accumulators, or writing them, before it.
template <int M, int N>
DEVICE void settle(float (&sums)[M][N][4]) {
  UNROLLED for (int i = 0; i < M; ++i) {
    UNROLLED for (int j = 0; j < N; ++j) asm volatile("" : "+f"(sums[i][j][0]), "+f"(sums[i][j][1]),
                                                      "+f"(sums[i][j][2]),
                                                      "+f"(sums[i][j][3])::"memory");
  }
}
template <int M, int N>
DEVICE void settle(int (&sums)[M][N][4]) {
  UNROLLED for (int i = 0; i < M; ++i) {
    UNROLLED for (int j = 0; j < N; ++j) asm volatile("" : "+r"(sums[i][j][0]), "+r"(sums[i][j][1]),
                                                      "+r"(sums[i][j][2]),
                                                      "+r"(sums[i][j][3])::"memory");
  }
}
/// After the wait: until here the tensor cores read these registers.
template <int M, int N>
DEVICE void hold(const unsigned (&operands)[M][N]) {
  UNROLLED for (int i = 0; i < M; ++i) {
    UNROLLED for (int j = 0; j < N; ++j) asm volatile("" ::"r"(operands[i][j]) : "memory");
  }
}

/// Describes an operand at `at` to wgmma: 128-byte swizzle, 1024 bytes from one eight rows of 128
/// bytes to the next, and `panels` bytes from one panel of 64 columns to the next where an operand
/// [depth][columns] is read.
DEVICE unsigned long long operand(unsigned at, unsigned panels = 16) {
  return 1ull << 62 | (unsigned long long)(1024 >> 4) << 32 |
         (unsigned long long)(panels >> 4) << 16 | (at & 0x3ffff) >> 4;
}
/// The operand `bytes` behind: an addition in the low half only.
DEVICE unsigned long long further(unsigned long long operand, unsigned bytes) {
  return (operand & 0xffffffff00000000ull) | ((unsigned)operand + (bytes >> 4));
}
