// Transposes tiles through shared memory: elements that are neighbours along `a` in the operand are
// neighbours along `b` in the result. A thread transposes VEC × VEC elements in registers, so that
// the tile is written and read in words of VEC elements.
constexpr int WORDS_A = TILE_A / VEC, WORDS_B = TILE_B / VEC;

/// The index of word `b` of row `a` in the tile, swizzled: neither the words of a row nor words
/// below each other share a bank.
DEVICE int word_index(int a, int b) {
  constexpr int AT_ONCE = 128 / (VEC * sizeof(From));  // words that all banks hold together
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
      tile[word_index(a + k, b)] = word.raw[0];
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = threadIdx.x; i < TILE_A * WORDS_B; i += BLOCK) {
    const int b = i % WORDS_B, a = i / WORDS_B;
    if (a0 + a >= a_end || b0 + b * VEC >= b_end) continue;
    Vector<From> word;
    word.raw[0] = tile[word_index(a, b)];
    Vector<To> v;
#pragma unroll
    for (int j = 0; j < VEC; ++j) v.element[j] = map(word.element[j]);
    write(to + (a0 + a) * to_a + b0 + b * VEC, v);
  }
}
