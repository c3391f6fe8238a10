// Weights of 8 bits, or of 4, become 16-bit floats in registers, a pair of them at a time.
/// Constants for pairs of floats: a float whose last digit counts ones, 1, and the signs.
constexpr bool BRAIN = sizeof(MMA_TYPE) == sizeof("bf16");
constexpr unsigned BASE = BRAIN ? 0x43004300 : 0x64006400, ONE = BRAIN ? 0x3f803f80 : 0x3c003c00,
                   SIGN = 0x80008000;

DEVICE unsigned fused(unsigned a, unsigned b, unsigned c) {
  unsigned sum;
  asm("fma.rn." MMA_TYPE "x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}

/// The weights in bytes 0 and 2, or in the lower halves of these.
DEVICE unsigned widen(unsigned bytes) {
  if (FOUR_BITS) return fused(bytes & 0x000f000f | BASE, ONE, BASE | 0x00080008 | SIGN);
  if (BRAIN) return fused(bytes & 0x00800080 | BASE, ONE | SIGN, bytes & 0x007f007f | BASE);
  return fused(bytes & 0x00ff00ff ^ (BASE | 0x00800080), ONE, BASE | 0x00800080 | SIGN);
}
