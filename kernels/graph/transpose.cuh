// Tiles through shared memory: elements that lie side by side along `a` in the operand lie side by
// side along `b` in the result. A thread turns VEC × VEC elements in its registers, so that the
// tile is written and read by words of VEC elements.
constexpr int WORDS_A = TILE_A / VEC, WORDS_B = TILE_B / VEC;

/// Where the word `b` of row `a` lies: neither the words of a row nor words below each other share
/// a bank.
DEVICE int place(int a, int b) {
  constexpr int AT_ONCE = 128 / (VEC * sizeof(From));  // words that the banks hold side by side
  constexpr int TURN = WORDS_B < AT_ONCE ? WORDS_B : AT_ONCE;
  return a * WORDS_B + (b ^ (a / VEC % TURN));
}

/// `from` and `to` begin at the tile's batch; neighbours along b are `from_b` apart, neighbours
/// along a `to_a`.
DEVICE void transpose_tile(const From* __restrict__ from, To* __restrict__ to, long long a0,
                           long long b0, long long a_end, long long b_end, long long from_b,
                           long long to_a) {
  __shared__ typename Vector<From>::Raw::type tile[TILE_A * WORDS_B];
#pragma unroll
  for (int i = threadIdx.x; i < WORDS_A * WORDS_B; i += BLOCK) {
    const int a = i % WORDS_A * VEC, b = i / WORDS_A;
    if (a0 + a >= a_end || b0 + b * VEC >= b_end) continue;
    Vector<From> rows[VEC];
#pragma unroll
    for (int j = 0; j < VEC; ++j) read(rows[j], from + (b0 + b * VEC + j) * from_b + a0 + a);
#pragma unroll
    for (int k = 0; k < VEC; ++k) {
      Vector<From> word;
#pragma unroll
      for (int j = 0; j < VEC; ++j) word.element[j] = rows[j].element[k];
      tile[place(a + k, b)] = word.raw[0];
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = threadIdx.x; i < TILE_A * WORDS_B; i += BLOCK) {
    const int b = i % WORDS_B, a = i / WORDS_B;
    if (a0 + a >= a_end || b0 + b * VEC >= b_end) continue;
    Vector<From> word;
    word.raw[0] = tile[place(a, b)];
    Vector<To> v;
#pragma unroll
    for (int j = 0; j < VEC; ++j) v.element[j] = map(word.element[j]);
    write(to + (a0 + a) * to_a + b0 + b * VEC, v);
  }
}
