// Weights of 8 bits, or of 4, become 16-bit floats in registers, a word of them at a time.
constexpr int PAIRS = FOUR_BITS ? 4 : 2;     // of weights in a word
/// Of floats in pairs: one whose last digit counts ones, 1, and the signs.
constexpr bool BRAIN = sizeof(MMA_TYPE) == sizeof("bf16");
constexpr unsigned BASE = BRAIN ? 0x43004300 : 0x64006400, ONE = BRAIN ? 0x3f803f80 : 0x3c003c00, SIGN = 0x80008000;

DEVICE unsigned fused(unsigned a, unsigned b, unsigned c) {
  unsigned sum;
  asm("fma.rn." MMA_TYPE "x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}

/// The weights of a word as pairs: of 8 bits neighbours, of 4 bits 0 with 4, 1 with 5, …, times their scale.
DEVICE void widen(unsigned word, unsigned scale, unsigned (&to)[PAIRS]) {
#pragma unroll
  for (int i = 0; i < PAIRS; ++i) {
    const unsigned bytes = __byte_perm(word, 0, i == 0 ? 0x4140 : 0x4342);
    if (FOUR_BITS) {
      to[i] = fused(fused(word >> 4 * i & 0x000f000f | BASE, ONE, BASE | 0x00080008 | SIGN), scale, SIGN);
    } else if (BRAIN) {
      to[i] = fused(bytes & 0x00800080 | BASE, ONE | SIGN, bytes & 0x007f007f | BASE);
    } else {
      to[i] = fused(bytes ^ 0x00800080 | BASE, ONE, BASE | 0x00800080 | SIGN);
    }
  }
}
