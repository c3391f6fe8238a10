// Tensor-core building blocks, as inline PTX: ldmatrix, mma.sync, and the swizzled shared memory
// that lets both meet no bank conflict. A `unit` is 16 bytes: eight elements, the width of every
// copy and of a matrix row.

/// Four 8×8 matrices; lanes 8i … 8i+7 hold the row addresses of matrix i.
DEVICE void load_matrices(unsigned (&r)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
DEVICE void load_transposed(unsigned (&r)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}
/// d[16, 8] += a[16, 16] · b[16, 8]. Lane l holds d at rows l / 4 and l / 4 + 8, columns 2 (l % 4)
/// and the next.
DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32." MMA_TYPE "." MMA_TYPE
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two floats rounded and packed, the first in the low half.
DEVICE unsigned pack(float low, float high) {
  unsigned pair;
  asm("cvt.rn." MMA_TYPE "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// Distance between rows of UNITS units: rows that no swizzle fits get an odd number, so that eight
/// of them hit all banks.
template <int UNITS>
DEVICE constexpr int pitch() {
  return UNITS % 8 == 0 || UNITS == 1 || UNITS == 2 || UNITS == 4 ? UNITS : UNITS / 2 * 2 + 1;
}
/// Byte offset of a unit. Eight consecutive rows of one unit column lie in different banks.
template <int UNITS>
DEVICE int swizzled(int row, int unit) {
  if (UNITS % 8 == 0) return (row * UNITS + (unit ^ (row & 7))) * 16;
  // Narrow rows: 8 / UNITS of them share 128 bytes, so the group of rows decides.
  constexpr int sharing = UNITS < 8 ? 8 / UNITS : 1;
  if (pitch<UNITS>() == UNITS) return (row * UNITS + (unit ^ ((row / sharing) & (UNITS - 1)))) * 16;
  return (row * pitch<UNITS>() + unit) * 16;
}

/// A unit whose elements are not 16-byte aligned or partly outside: gathered one by one, zeros
/// beyond `count`.
DEVICE void gather(unsigned char* to, const T* from, long long count) {
  T eight[8];
  UNROLLED for (int i = 0; i < 8; ++i) eight[i] = i < count ? from[i] : T(0.0f);
  *(uint4*)to = *(uint4*)eight;
}

/// The offset of a unit in a tile whose rows run along k or, with ACROSS, across it.
template <bool ACROSS, int UNITS>
DEVICE int unit_offset(int row, int unit) {
  return swizzled<UNITS>(row, unit);
}

/// Accumulators of fragments of 16 × 8.
template <int M, int N, class S>
DEVICE void clear(S (&sums)[M][N][4]) {
  UNROLLED for (int i = 0; i < M; ++i) {
    UNROLLED for (int j = 0; j < N; ++j)
        sums[i][j][0] = sums[i][j][1] = sums[i][j][2] = sums[i][j][3] = 0;
  }
}
template <int M, int N, class S>
DEVICE void add(S (&sums)[M][N][4], const S (&more)[M][N][4]) {
  UNROLLED for (int i = 0; i < M; ++i) {
    UNROLLED for (int j = 0; j < N * 4; ++j) sums[i][j / 4][j % 4] += more[i][j / 4][j % 4];
  }
}
