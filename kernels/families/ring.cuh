// STAGES buffers of STAGE_BYTES, and behind them somewhere their barriers.
struct Ring : BufferRing<STAGES> {
  unsigned shared;

  DEVICE Ring(unsigned char* buffers, int barriers_at) : BufferRing(shared_address(buffers) + barriers_at), shared(shared_address(buffers)) {}
  DEVICE unsigned buffer() const { return shared + stage * STAGE_BYTES; }
  /// By one thread, before the block's barrier.
  DEVICE void make(int readers) const {
    BufferRing::make(readers);
    show_barriers();
  }
};
DEVICE void release(const Ring& ring) { ring.release(); }
