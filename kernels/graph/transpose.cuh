// Tiles through shared memory: elements that lie side by side along `a` in the operand lie side by side along `b` in the
// result. Rows of the tile are one word longer than a multiple of the banks.
constexpr int WORD = sizeof(From) < 4 ? 4 / sizeof(From) : 1;
constexpr int LEADING = TILE_B + WORD;

/// `from` and `to` begin at the tile's batch; neighbours along b are `from_b` apart, neighbours along a `to_a`.
DEVICE void transpose_tile(const From* __restrict__ from, To* __restrict__ to, long long a0, long long b0, long long a_end,
                           long long b_end, long long from_b, long long to_a) {
  __shared__ From tile[TILE_A][LEADING];
#pragma unroll
  for (int i = threadIdx.x; i < TILE_A * TILE_B / VEC; i += BLOCK) {
    const int a = i % (TILE_A / VEC) * VEC, b = i / (TILE_A / VEC);
    if (a0 + a >= a_end || b0 + b >= b_end) continue;
    Vector<From> v;
    read(v, from + (b0 + b) * from_b + a0 + a);
#pragma unroll
    for (int j = 0; j < VEC; ++j) tile[a + j][b] = v.element[j];
  }
  __syncthreads();
#pragma unroll
  for (int i = threadIdx.x; i < TILE_A * TILE_B / VEC; i += BLOCK) {
    const int b = i % (TILE_B / VEC) * VEC, a = i / (TILE_B / VEC);
    if (a0 + a >= a_end || b0 + b >= b_end) continue;
    Vector<To> v;
#pragma unroll
    for (int j = 0; j < VEC; ++j) v.element[j] = map(tile[a][b + j]);
    write(to + (a0 + a) * to_a + b0 + b, v);
  }
}
