// Pixels of an image as rows of a matrix, for convolutions with channels last: row npq of x' holds what the filter meets there.

/// Bit r: filter row r lies inside the image; bit R + s: column s.
template <bool WIDE> struct MaskOf { typedef unsigned type; };
template <> struct MaskOf<true> { typedef unsigned long long type; };
typedef MaskOf<(R + S > 32)>::type Mask;

/// COUNT rows, STRIDE apart.
template <int COUNT, int STRIDE> struct Pixels {
  int corner[COUNT];  // of the filter's first tap, in units of which a pixel has `width`
  Mask mask[COUNT];

  DEVICE Pixels(unsigned first_row, long long pixels, int h, int w, int p, int q, int width) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const unsigned row = first_row + i * STRIDE;
      const unsigned image = row / (unsigned)(p * q), rest = row % (unsigned)(p * q);
      const int top = (int)(rest / q) * STEP - PADDING, left = (int)(rest % q) * STEP - PADDING;
      corner[i] = (((int)image * h + top) * w + left) * width;
      mask[i] = 0;
      if (row >= pixels) continue;
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if (top + r * DILATION >= 0 && top + r * DILATION < h) mask[i] |= (Mask)1 << r;
      }
#pragma unroll
      for (int s = 0; s < S; ++s) {
        if (left + s * DILATION >= 0 && left + s * DILATION < w) mask[i] |= (Mask)1 << (R + s);
      }
    }
  }
  /// Does the tap of row i lie inside?
  DEVICE bool meets(int i, int r, int s) const { return (mask[i] >> r & mask[i] >> (R + s) & 1) != 0; }
};
