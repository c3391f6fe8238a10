// The index of a result: row-major, in c. Convolutions have their own index (conv_geometry.cuh).

/// Neighbouring elements of a row.
template <class E, int COUNT>
DEVICE void put(E* c, long long row, long long column, long long, long long n,
                Units<E, COUNT> unit) {
  E* to = c + row * n + column;
  if (C_ALIGNED) {  // all or none of them exist
    *(Units<E, COUNT>*)to = unit;
  } else {
    UNROLLED for (int e = 0; e < COUNT; ++e) {
      if (column + e < n) to[e] = unit.element[e];
    }
  }
}
/// Stores elements one by one, for results whose units are scattered; here they are not.
constexpr bool SCATTERED = false;
/// The number of elements of a partial sum.
DEVICE long long share_elements(long long m, long long n) { return m * n; }
