// Hopper's tensor cores as inline PTX: products of a warpgroup whose operands are in shared memory.
// They run asynchronously; their accumulators may only be used after a wait.

/// Makes this thread's writes to shared memory visible to the tensor cores, once a barrier has
/// followed.
DEVICE void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// Called before the first product after accumulators were written.
DEVICE void start_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most PENDING committed groups are running.
template <int PENDING>
DEVICE void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
/// Called after the wait: keeps the compiler from reading or writing accumulators before it.
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
/// Called after the wait: keeps these registers unchanged up to here, because the tensor cores read
/// them.
template <int M, int N>
DEVICE void hold(const unsigned (&operands)[M][N]) {
  UNROLLED for (int i = 0; i < M; ++i) {
    UNROLLED for (int j = 0; j < N; ++j) asm volatile("" ::"r"(operands[i][j]) : "memory");
  }
}

/// The wgmma descriptor of an operand at `at`: 128-byte swizzle, 1024 bytes between groups of eight
/// rows of 128 bytes, and `panels` bytes between panels of 64 columns where an operand
/// [depth][columns] is read.
DEVICE unsigned long long operand(unsigned at, unsigned panels = 16) {
  return 1ull << 62 | (unsigned long long)(1024 >> 4) << 32 |
         (unsigned long long)(panels >> 4) << 16 | (at & 0x3ffff) >> 4;
}
/// The descriptor of the operand `bytes` further on: an addition in the low half.
DEVICE unsigned long long further(unsigned long long operand, unsigned bytes) {
  return (operand & 0xffffffff00000000ull) | ((unsigned)operand + (bytes >> 4));
}
