// The main loop of matrix products and convolutions on Hopper where every thread copies: wgmma runs
// in the background, and while tile t is multiplied, tile t + STAGES - 2 is fetched.
constexpr int THREADS = TILE_M / GROUP_ROWS * 128;
constexpr bool STAGED_APART = PERSISTENT;
constexpr int CONSUMERS = THREADS;

DEVICE void wait_for_consumers() { __syncthreads(); }

/// Multiplies `tiles` tiles, which make a tile of the result every `depth` of them: then finish()
/// takes the sums, while the copies for the next one are under way. fetch(at) starts the copies of
/// the next tile into the buffer at byte `at`.
template <class Fetch, class Finish>
DEVICE void multiply_tiles(unsigned char* shared, int tiles, int depth, Sums& sums,
                           const Fetch& fetch, const Finish& finish) {
  const unsigned shared_at = (unsigned)__cvta_generic_to_shared(shared);
  clear(sums);
  if (tiles <= 0) return finish();
  UNROLLED for (int s = 0; s < STAGES - 2; ++s) {
    if (s < tiles) fetch(s * STAGE_BYTES);
    commit_copies();
  }
  int stage = 0, free = STAGES - 2;
  for (int done = 0; done < tiles; done += depth) {
    for (int tile = done; tile < done + depth; ++tile) {
      wait_copies<STAGES - 3>();
      fence_async_proxy();
      // From here on all threads see this tile, and the products that read the tile before the last
      // are finished.
      __syncthreads();
      multiply_buffer(sums, shared_at + stage * STAGE_BYTES);
      if (tile + STAGES - 2 < tiles) fetch(free * STAGE_BYTES);
      commit_copies();
      wait_products<1>();
      stage = stage + 1 == STAGES ? 0 : stage + 1;
      free = free + 1 == STAGES ? 0 : free + 1;
    }
    wait_products<0>();
    settle(sums);
    finish();
    if (PERSISTENT) clear(sums);
  }
}
