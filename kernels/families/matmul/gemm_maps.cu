// c[m, n] = a[m, k] · b[k, n], row-major throughout (b may be [n, k]), by tensor maps of a and b.
// With SPLIT_K > 1 a block sums over one of SPLIT_K parts of k.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
         OUT* __restrict__ c, long long m, long long n, long long k,
         long long batches EPILOGUE_PARAMETERS) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const unsigned all = tile_count(m, n) * (unsigned)batches;
  Buffers ring(shared_address(shared), shared_address(shared) + BARRIERS);
  if (A_ROWS < TILE_M) clear_rows(shared);
  if (threadIdx.x == 0) ring.make(4 * SHARING);
  __syncthreads();
  if (threadIdx.x >= CONSUMERS) {
    if (FETCHERS == 128) give_registers<FETCHER_REGISTERS>();
    if (threadIdx.x == CONSUMERS) fetch(ring, a, b, TWIN, all, m, n, k);
    store_nothing();
  } else {
    if (FETCHERS == 128) take_registers<CONSUMER_REGISTERS>();
    await_launch_before();
    Sums sums;
    constexpr bool TURNS = GROUPS > SHARING;
    bool mine = turn_set() == 0;
    for (unsigned index = blockIdx.x; index < all; index += gridDim.x, mine = !mine) {
      const Work work = work_at(index, m, n, k);
      if (TURNS && !mine) {
        ring.skip(work.depth.last - work.depth.first);
        continue;
      }
      if (TURNS && index != blockIdx.x) wait_for_turn();
      const Epilogue epilogue = EPILOGUE(work.batch);
      const Ahead ahead(epilogue, shared, work.tile, m, n);
      multiply_tile(ring, sums, work, TURNS && index + gridDim.x < all);
      ahead.give();
      store_result(shared, sums, result_of(c, work, batches, m, n), work.tile, m, n, epilogue,
                   ahead);
    }
  }
  leave();
}
