// What all kernels of a convolution share: units, arranged places, and powers of two for float32.
constexpr int UNIT = 16 / sizeof(Operand);  // elements that are copied at once

// float32 is multiplied as float16, which has as many bits as TF32: powers of two bring the largest
// elements of x and of w that a sample has to [2^8, 2^9), or, where others are 64 times larger, all
// elements' largest to [2^14, 2^15). Elements below 2^-23 of the largest lose bits.
constexpr int SAMPLED_X = 256, SAMPLED_W = 32;  // blocks that look for them
// where the largest of x and of w is, if it would not fit; else 0
constexpr int LARGEST = SAMPLED_X + SAMPLED_W;
DEVICE unsigned largest_of(const unsigned* parts, int count) {
  unsigned largest = 1;
  for (int i = threadIdx.x % 32; i < count; i += 32) largest = max(largest, parts[i]);
  for (int step = 16; step > 0; step /= 2)
    largest = max(largest, __shfl_xor_sync(~0u, largest, step));
  return largest;
}
/// The power for a magnitude, given by its bits.
DEVICE int shift_of(unsigned bits) {
  return 14 - (bits >= 0x00800000u ? (int)(bits >> 23) - 127 : -118 - __clz(bits));
}
/// By the sample alone, and after all elements were seen.
DEVICE int sampled_shift(const unsigned* largest, bool of_x) {
  return shift_of(of_x ? largest_of(largest, SAMPLED_X)
                       : largest_of(largest + SAMPLED_X, SAMPLED_W)) -
         6;
}
DEVICE int final_shift(const unsigned* largest, bool of_x) {
  const unsigned exact = largest[LARGEST + !of_x];
  return exact > 0 ? shift_of(exact) : sampled_shift(largest, of_x);
}
/// x · 2^shift in steps that stay within float32's exponents.
DEVICE float shifted(float x, int shift) {
  const int third = shift / 3;
  const float step = __int_as_float((third + 127) << 23);
  return x * step * step * __int_as_float((shift - 2 * third + 127) << 23);
}

// x may be arranged with zeros around it, and what phases of the result see of a filter as rows of
// its own (codegen/conv/conv_form.h).
constexpr int SPACE = IN_D * IN_H * IN_W, PLACES = PADDED_D * PADDED_H * PADDED_W,
              ROW_PHASES = PHASES_D * PHASES_H * PHASES_W;
