// Copies tiles of the operands to shared memory by asynchronous copies of 16 bytes (a unit);
// elements outside of the matrix become zeros. Tiles of a and of a transposed b are
// [lines][TILE_K]; a row-major b is cut into panels of B_PANEL columns, each [TILE_K][B_PANEL].
// unit_offset gives the offset of a unit in a tile.
constexpr int PER_UNIT = 16 / sizeof(Operand);  // elements

/// Copies one unit from global to shared memory, of which `count` elements exist; ALIGN = number of
/// elements that are known to be contiguous and aligned. With EXACT only the elements skip … count
/// - 1 are copied.
template <int ALIGN, bool EXACT>
DEVICE void copy_unit(unsigned char* shared, unsigned at, const Operand* from, int count,
                      int skip) {
  constexpr int BYTES = ALIGN * sizeof(Operand);
  if (BYTES < 4 || EXACT && (count < PER_UNIT || skip > 0)) {
    Operand unit[PER_UNIT];
    UNROLLED for (int i = 0; i < PER_UNIT; ++i) unit[i] = i >= skip && i < count ? from[i]
                                                                                 : Operand(0.0f);
    *(uint4*)(shared + at) = *(uint4*)unit;
  } else {
    UNROLLED for (int i = 0; i < PER_UNIT; i += ALIGN) copy_async<(BYTES < 4 ? 4 : BYTES)>(
        shared_address(shared) + at + i * (int)sizeof(Operand), from + i, count > i);
  }
}

/// LINES rows of a row-major matrix, TILE_K of each at a time; or, DOWN, as many columns. A thread
/// keeps its column of units. TRIANGULAR: what of a matrix counts (batches.cuh).
template <bool DOWN, int LINES, int ALIGN, int TRIANGULAR = 0>
struct Walker {
  static constexpr int HEIGHT = DOWN ? TILE_K : LINES, UNITS = (DOWN ? B_PANEL : TILE_K) / PER_UNIT;
  static constexpr int PANELS = DOWN ? LINES / B_PANEL : 1, PANEL_BYTES = HEIGHT * UNITS * 16;
  static constexpr int STRIDE = THREADS / UNITS, COUNT = (HEIGHT + STRIDE - 1) / STRIDE;
  const Operand* from;
  long long width, stride;  // of a row, and elements between this thread's rows
  long long on;             // the diagonal's element, counted from this thread's first
  int below, right;         // rows from this thread's first on, elements of a row from its unit on

  DEVICE Walker(const Operand* matrix, long long width, long long first_line, long long lines,
                int first, int last)
      : width(width), stride(STRIDE * width) {
    const long long y = (DOWN ? first : first_line) + threadIdx.x / UNITS,
                    x = (DOWN ? first_line : first) + threadIdx.x % UNITS * PER_UNIT;
    from = matrix + y * width + x;
    on = y - x;
    below = (int)(DOWN ? last - y : min(lines - y, (long long)LINES));
    right = (int)(DOWN ? min(lines - x, (long long)LINES) : last - x);
  }
  DEVICE void fetch(unsigned char* shared, unsigned at) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
    UNROLLED for (int i = 0; i < COUNT * PANELS; ++i) {
      const int down = i % COUNT * STRIDE, panel = i / COUNT;
      if (HEIGHT % STRIDE != 0 && row + down >= HEIGHT) continue;
      int count = down < below ? right - panel * B_PANEL : 0, skip = 0;
      if (TRIANGULAR == 1) count = (int)min((long long)count, on + down + 1);
      if (TRIANGULAR == 2) skip = (int)min(on + down, (long long)PER_UNIT);
      copy_unit<ALIGN, TRIANGULAR != 0>(
          shared, at + panel * PANEL_BYTES + unit_offset<DOWN, UNITS>(row + down, unit),
          from + i % COUNT * stride + panel * B_PANEL, count, skip);
    }
    from += DOWN ? TILE_K * width : TILE_K;
    if (DOWN)
      below -= TILE_K;
    else
      right -= TILE_K, on -= TILE_K;
  }
};
