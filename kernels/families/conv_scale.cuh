// What all kernels of a convolution share: units, arranged places, and powers of two for float32.
constexpr int UNIT = 8;  // elements that are copied at once
template <class E, int COUNT> struct alignas(COUNT * sizeof(E)) Units {
  E element[COUNT];
};

// float32 is multiplied as float16, which has as many bits as TF32: powers of two bring the largest elements of x and of w into
// [2^14, 2^15). Elements below 2^-29 of the largest lose bits.
constexpr int MEASURING_X = 256, MEASURING_W = 32;  // blocks that look for them
DEVICE unsigned largest_of(const unsigned* parts, int count) {
  unsigned largest = 0;
  for (int i = threadIdx.x % 32; i < count; i += 32) largest = max(largest, parts[i]);
  return __reduce_max_sync(~0u, largest);
}
/// The power for a magnitude, given by its bits.
DEVICE int shift_of(unsigned bits) { return bits == 0 ? 0 : 14 - (bits >= 0x00800000u ? (int)(bits >> 23) - 127 : -118 - __clz(bits)); }
DEVICE int shift_x(const unsigned* largest) { return shift_of(largest_of(largest, MEASURING_X)); }
DEVICE int shift_w(const unsigned* largest) { return shift_of(largest_of(largest + MEASURING_X, MEASURING_W)); }
/// x · 2^shift in steps that stay within float32's exponents.
DEVICE float shifted(float x, int shift) {
  const int third = shift / 3;
  const float step = __int_as_float((third + 127) << 23);
  return x * step * step * __int_as_float((shift - 2 * third + 127) << 23);
}

// x may be arranged with zeros around it, and what phases of the result see of a filter as rows of its own (codegen/conv_form.h).
constexpr int SPACE = IN_D * IN_H * IN_W, PLACES = PADDED_D * PADDED_H * PADDED_W, ROW_PHASES = PHASES_D * PHASES_H * PHASES_W;
