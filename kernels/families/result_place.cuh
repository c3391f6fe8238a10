// Where a product's result lies: row-major, in c. Convolutions have their own places (conv_geometry.cuh).

/// Eight neighbouring elements of a row.
DEVICE void put_unit(T* c, long long row, long long column, long long, long long n, uint4 unit) {
  store_unit<C_ALIGNED>(c + row * n + column, unit, n - column);
}
/// Elements one by one, neighbours from lane to lane: where units are scattered, which they are not here.
constexpr bool SCATTERED = false;
DEVICE void put_element(T*, long long, long long, long long, long long, T) {}
/// Two of them, in full precision.
DEVICE void put_pair(float* c, long long row, long long column, long long, long long n, float a, float b) {
  float* to = c + row * n + column;
  if (C_ALIGNED) {  // n is a multiple of 8: both or neither
    *(float2*)to = make_float2(a, b);
  } else {
    to[0] = a;
    if (column + 1 < n) to[1] = b;
  }
}
/// Elements of the result, of which each stretch of the depth has a share.
DEVICE long long share_elements(long long m, long long n) { return m * n; }
