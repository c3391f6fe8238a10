// The epilogue of convolutions whose results have their channels first: rows of the product are
// filters, columns are positions of pixels. PixelEpilogue has rows of pixels and columns of
// filters, in the order of the graph's product.

/// The number of the pixel at a position, over all images.
DEVICE long long pixel_number(long long position);

struct Epilogue : PixelEpilogue {
  typedef PixelEpilogue::Column Row;
  typedef PixelEpilogue::Row Column;
  DEVICE Row row(long long filter) const { return PixelEpilogue::column(filter); }
  DEVICE Column column(long long position) const { return PixelEpilogue::row(pixel(position)); }
  template <int COUNT>
  DEVICE void elements(Element (&some)[COUNT], long long filter, long long position) const {
    UNROLLED for (int e = 0; e < COUNT; ++e) some[e] = element(pixel(position + e), filter);
  }
  template <class S>
  DEVICE float operator()(S sum, float twin, const Row& row, const Column& column,
                          const Element& element, long long filter, long long position) const {
    return PixelEpilogue::operator()(sum, twin, column, row, element, pixel(position), filter);
  }
  /// By the element's number in the result.
  DEVICE float at(float sum, long long number) const {
    constexpr long long OUTPUTS = (long long)OUT_D * OUT_H * OUT_W;
    const long long filter = number / OUTPUTS % FILTERS,
                    at = number / (OUTPUTS * FILTERS) * OUTPUTS + number % OUTPUTS;
    return PixelEpilogue::operator()(sum, 0.0f, PixelEpilogue::row(at),
                                     PixelEpilogue::column(filter), element(at, filter), at,
                                     filter);
  }

 private:
  DEVICE long long pixel(long long position) const {
    return min(pixel_number(position), epilogue_rows - 1);
  }
};
