// Where a product's result lies: row-major, in c. Convolutions have their own places (conv_geometry.cuh).

/// Eight neighbouring elements of a row.
DEVICE void put_unit(T* c, long long row, long long column, long long, long long n, uint4 unit) {
  T* to = c + row * n + column;
  if (C_ALIGNED) {
    *(uint4*)to = unit;
  } else {
    UNROLLED for (int e = 0; e < 16 / sizeof(T); ++e) {
      if (column + e < n) to[e] = ((const T*)&unit)[e];
    }
  }
}
/// Elements one by one, neighbours from lane to lane, are for where units are scattered, which they are not here.
constexpr bool SCATTERED = false;
DEVICE void put_element(T* c, long long row, long long column, long long, long long n, T element) { c[row * n + column] = element; }
/// Two of them, in full precision.
DEVICE void put_pair(float* c, long long row, long long column, long long, long long n, float a, float b) {
  float* to = c + row * n + column;
  if (C_ALIGNED) {  // n is even: both or neither
    *(float2*)to = make_float2(a, b);
  } else {
    to[0] = a;
    if (column + 1 < n) to[1] = b;
  }
}
/// Elements of the result, of which each stretch of the depth has a share.
DEVICE long long share_elements(long long m, long long n) { return m * n; }
