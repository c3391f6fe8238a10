// Where a product's result lies: row-major, in c. Convolutions have their own places
// (conv_geometry.cuh).

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
/// Elements one by one, neighbours from lane to lane, are for where units are scattered, which they
/// are not here.
constexpr bool SCATTERED = false;
/// Elements of the result, of which each stretch of the depth has a share.
DEVICE long long share_elements(long long m, long long n) { return m * n; }
