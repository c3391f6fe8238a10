// Hopper's bulk copies of boxes of tensors into shared memory, and the mbarriers that count their
// bytes. One thread starts the copy of a box; readers wait for the phase of the barrier.

/// The encoded tensor map; only the copies read it.
struct __align__(64) CUtensorMap {
  unsigned long long opaque[16];
};

DEVICE void make_barrier(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// Makes initialised barriers visible to the copy engine; between the last make_barrier and the
/// block's barrier.
DEVICE void fence_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// An arrival that also keeps the phase open until `bytes` bytes have arrived.
DEVICE void expect_bytes(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
               "r"(bytes)
               : "memory");
}
/// Waits until the phase of that parity is over; on a fresh barrier odd parity does not wait.
DEVICE void await(unsigned barrier, unsigned parity) {
#if __CUDA_ARCH__ >= 900
#define MBARRIER_WAIT "try_wait"
#else
#define MBARRIER_WAIT "test_wait"
#endif
  unsigned over;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier." MBARRIER_WAIT
                 ".parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(over)
                 : "r"(barrier), "r"(parity)
                 : "memory");
  } while (!over);
}

/// The policies that createpolicy makes for evict_normal and evict_first. Elements that are read
/// once and leave L2 first evict nothing else, above all no lines that would have to be written
/// back.
constexpr unsigned long long EVICT_NORMAL = 0x1000000000000000, EVICT_FIRST = 0x12f0000000000000;

/// Copies the map's box at (x, y, z) into shared memory; zeros outside of the tensor.
DEVICE void copy_box(unsigned to, const CUtensorMap& map, int x, int y, int z, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3, %4}], [%5];" ::"r"(to),
      "l"((unsigned long long)&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

DEVICE void copy_box(unsigned to, const CUtensorMap& map, int x, int y, int z, unsigned barrier,
                     unsigned long long policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_"
      "hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier), "l"(policy)
      : "memory");
}

/// The same for a tensor of five dimensions.
DEVICE void copy_box(unsigned to, const CUtensorMap& map, int x, int y, int z, int u, int v,
                     unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
      "l"((unsigned long long)&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v), "r"(barrier)
      : "memory");
}

/// Copies `bytes` contiguous bytes, a multiple of 16.
DEVICE void copy_bytes(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

/// A warpgroup gives registers back, or waits for them: COUNT per thread from here on.
template <int COUNT>
DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT>
DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/// A ring of COUNT buffers of BYTES bytes, the first at `first`, which one thread fills while warps
/// read others, in the order in which they are filled. A pair of barriers per buffer says when it
/// is full and when it is free again. The parity flips with every round.
template <int COUNT, int BYTES>
struct Ring {
  unsigned first, barriers;
  int stage = 0;
  unsigned parity = 0;

  DEVICE Ring(unsigned first, unsigned barriers) : first(first), barriers(barriers) {}
  DEVICE unsigned buffer() const { return first + stage * BYTES; }
  DEVICE unsigned full() const { return barriers + stage * 16; }
  DEVICE unsigned free() const { return full() + 8; }
  DEVICE void await_full() const { await(full(), parity); }
  DEVICE void await_free() const { await(free(), parity ^ 1); }
  /// Tells the filling thread that this warp has read the buffer.
  DEVICE void release() const {
    if (threadIdx.x % 32 == 0) arrive(free());
  }
  DEVICE void step() {
    if (++stage == COUNT) stage = 0, parity ^= 1;
  }
  DEVICE void skip(int count) {
    count += stage;
    stage = count % COUNT;
    parity ^= count / COUNT & 1;
  }
  /// Called by one thread before the block's barrier. The filling thread arrives once at `full`,
  /// every reading warp at `free`.
  DEVICE void make(int readers) const {
    for (int s = 0; s < COUNT; ++s) {
      make_barrier(barriers + s * 16, 1);
      make_barrier(barriers + s * 16 + 8, readers);
    }
    fence_barriers();
  }
};
