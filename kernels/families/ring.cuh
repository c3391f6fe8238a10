// STAGES buffers of STAGE_BYTES that a thread fills by bulk copies while warps read others: a pair of barriers per buffer says when it is full
// and when it is free again.

/// The buffers in the order in which they are filled; parity counts rounds.
struct Ring {
  unsigned shared, barriers;
  int stage = 0;
  unsigned parity = 0;

  DEVICE Ring(unsigned char* buffers, int barriers_at) : shared((unsigned)__cvta_generic_to_shared(buffers)), barriers(shared + barriers_at) {}
  DEVICE unsigned buffer() const { return shared + stage * STAGE_BYTES; }
  DEVICE unsigned full() const { return barriers + stage * 16; }
  DEVICE unsigned free() const { return full() + 8; }
  DEVICE void step() {
    if (++stage < STAGES) return;
    stage = 0;
    parity ^= 1;
  }
  DEVICE void skip(int count) {
    count += stage;
    stage = count % STAGES;
    parity ^= count / STAGES & 1;
  }
  /// By one thread, before the block's barrier: whoever fetches arrives once, and every warp that reads.
  DEVICE void make(int readers) const {
    for (int s = 0; s < STAGES; ++s) {
      make_barrier(barriers + s * 16, 1);
      make_barrier(barriers + s * 16 + 8, readers);
    }
    show_barriers();
  }
};
/// This warp needs the buffer no more.
DEVICE void release(const Ring& ring) {
  if (threadIdx.x % 32 == 0) arrive(ring.free());
}
