// Shared by all kernels of a convolution: units, arranged positions, and powers of two for float32.
constexpr int UNIT = 16 / sizeof(Operand);  // elements that are copied at once

// Float32 is multiplied as float16, which has as many mantissa bits as TF32. Powers of two scale
// the largest elements of a sample of x and of w to [2^8, 2^9), or, if other elements are 64 times
// larger, the largest of all elements to [2^14, 2^15). Elements below 2^-23 of the largest lose
// bits.
constexpr int SAMPLED_X = 256, SAMPLED_W = 32;  // blocks that look for them
// Index of the largest element of x and of w, if it exceeds the sampled scale; else 0.
constexpr int LARGEST = SAMPLED_X + SAMPLED_W;
DEVICE unsigned largest_of(const unsigned* parts, int count) {
  unsigned largest = 1;
  for (int i = threadIdx.x % 32; i < count; i += 32) largest = max(largest, parts[i]);
  for (int step = 16; step > 0; step /= 2)
    largest = max(largest, __shfl_xor_sync(~0u, largest, step));
  return largest;
}
/// The exponent of the scale for a magnitude given by its bits.
DEVICE int shift_of(unsigned bits) {
  return 14 - (bits >= 0x00800000u ? (int)(bits >> 23) - 127 : -118 - __clz(bits));
}
/// The scale by the sample alone, and after all elements were seen.
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

// x may be arranged with zeros around it; each phase of the result has rows of filters of its own
// (codegen/conv/conv_form.h).
constexpr int SPACE = IN_D * IN_H * IN_W, POSITIONS = PADDED_D * PADDED_H * PADDED_W,
              ROW_PHASES = PHASES_D * PHASES_H * PHASES_W;
