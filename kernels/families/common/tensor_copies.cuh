// Hopper's bulk copies of boxes of tensors into shared memory, and the barriers in shared memory
// that count their bytes. One thread asks for a box; whoever needs it waits for the barrier's
// phase.

/// What the driver makes of a tensor's address and shape; only the copies read it.
struct __align__(64) CUtensorMap {
  unsigned long long opaque[16];
};

DEVICE void make_barrier(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// After the last make_barrier, before the block's barrier: the copy engine sees them too.
DEVICE void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// An arrival; and the phase stays open until `bytes` have come.
DEVICE void expect_bytes(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
               "r"(bytes)
               : "memory");
}
/// Until the phase of that parity is over; for odd parity at once on a fresh barrier.
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

/// What createpolicy makes of evict_normal and evict_first. Elements that are read once and leave
/// L2 first drive nothing else out, above all no lines that would have to be written back.
constexpr unsigned long long EVICT_NORMAL = 0x1000000000000000, EVICT_FIRST = 0x12f0000000000000;

/// The map's box at (x, y, z) into shared memory; zeros where it leaves the tensor.
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

/// Of a tensor of five dimensions.
DEVICE void copy_box(unsigned to, const CUtensorMap& map, int x, int y, int z, int u, int v,
                     unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
      "l"((unsigned long long)&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v), "r"(barrier)
      : "memory");
}

/// `bytes` side by side, a multiple of 16.
DEVICE void copy_bytes(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

/// A group of four warps hands registers back, or waits for as many: COUNT for each thread from
/// here on.
template <int COUNT>
DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT>
DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/// COUNT buffers of BYTES, the first at `first`, that one thread fills while warps read others, in
/// the order in which they are filled: a pair of barriers for each says when it is full and when it
/// is free again. Parity counts rounds.
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
  /// This warp needs the buffer no more.
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
  /// By one thread, before the block's barrier: whoever fills arrives once, and every warp that
  /// reads.
  DEVICE void make(int readers) const {
    for (int s = 0; s < COUNT; ++s) {
      make_barrier(barriers + s * 16, 1);
      make_barrier(barriers + s * 16 + 8, readers);
    }
    show_barriers();
  }
};
