// c[m, n] = a[m, k] · b[k, n], row-major throughout (b may be [n, k]), by tensor maps of a and b. With SPLIT_K > 1 a block sums one of SPLIT_K
// stretches of k.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                                          OUT* __restrict__ c, long long m, long long n, long long k FINISH_PARAMETERS) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const int tiles = (int)((k + TILE_K - 1) / TILE_K);
  const Depth depth = {(int)((long long)tiles * blockIdx.y / SPLIT_K), (int)((long long)tiles * (blockIdx.y + 1) / SPLIT_K)};
  const unsigned all = tile_count(m, n);
  Ring ring(shared, BARRIERS);
  if (A_ROWS < TILE_M) clear_rows(shared);
  if (threadIdx.x == 0) ring.make(4 * SHARING);
  __syncthreads();
  if (threadIdx.x >= CONSUMERS) {
    if (FETCHERS == 128) give_registers<FETCHER_REGISTERS>();
    if (threadIdx.x == CONSUMERS) fetch(ring, a, b, depth, all, m, n);
    store_nothing();
  } else {
    if (FETCHERS == 128) take_registers<CONSUMER_REGISTERS>();
    Sums sums;
    constexpr bool TURNS = GROUPS > SHARING;
    bool mine = turn_set() == 0;
    for (unsigned index = blockIdx.x; index < all; index += gridDim.x, mine = !mine) {
      if (TURNS && !mine) {
        ring.skip(depth.last - depth.first);
        continue;
      }
      if (TURNS && index != blockIdx.x) wait_for_turn();
      const Tile tile = tile_at(index, m, n);
      const Ahead ahead(FINISH, shared, tile, m, n);
      multiply_tile(ring, sums, depth, TURNS && index + gridDim.x < all);
      ahead.give();
      store_result(shared, sums, c, tile, m, n, FINISH, ahead);
    }
  }
  leave();
}
