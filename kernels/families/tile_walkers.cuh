// How tiles of the operands travel to shared memory: asynchronous copies of 16 bytes, a unit, and zeros for what lies outside. Tiles of a
// and of a transposed b are [rows][TILE_K]; a row-major b's is cut into panels of B_PANEL columns, each [TILE_K][B_PANEL]. Where a unit goes
// in them, row_place and column_place say.
constexpr int PER_UNIT = 16 / sizeof(T);  // elements

/// One unit global → shared, of which `count` elements exist; ALIGN = elements that are sure to be contiguous and aligned. With EXACT
/// nothing but elements skip … count - 1 is copied.
template <int ALIGN, bool EXACT = false>
DEVICE void copy_unit(unsigned char* shared, unsigned at, const T* from, int count, int skip = 0) {
  constexpr int BYTES = ALIGN * sizeof(T);
  if (BYTES < 4 || EXACT && (count < PER_UNIT || skip > 0)) {
    T unit[PER_UNIT];
    UNROLLED for (int i = 0; i < PER_UNIT; ++i) unit[i] = i >= skip && i < count ? from[i] : T(0.0f);
    *(uint4*)(shared + at) = *(uint4*)unit;
  } else {
    UNROLLED for (int i = 0; i < PER_UNIT; i += ALIGN) copy_async<(BYTES < 4 ? 4 : BYTES)>(shared_address(shared) + at + i * (int)sizeof(T), from + i, count > i);
  }
}

/// ROWS × TILE_K of a row-major matrix, walking along its rows. A thread keeps its unit column. TRIANGULAR: what of it counts
/// (batches.cuh).
template <int ROWS, int ALIGN, int TRIANGULAR = 0>
struct RowWalker {
  static constexpr int UNITS = TILE_K / PER_UNIT;
  static constexpr int STRIDE = THREADS / UNITS;
  static constexpr int COUNT = (ROWS + STRIDE - 1) / STRIDE;
  const T* from;
  long long stride;  // elements between this thread's rows
  int rows;          // that exist, counted from this thread's first
  int left;          // elements of the row from this thread's unit on
  long long on;      // the diagonal's element, counted from this thread's first

  DEVICE RowWalker(const T* matrix, long long width, long long height, long long first_row, int first, int last) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
    const bool inside = first_row + row < height && (STRIDE <= ROWS || row < ROWS);
    from = matrix + (inside ? first_row + row : 0) * width + first + unit * PER_UNIT;
    stride = STRIDE * width;
    rows = inside ? (int)min(height - first_row - row, (long long)ROWS) : 0;
    left = last - first - unit * PER_UNIT;
    on = first_row + row - first - unit * PER_UNIT;
  }
  DEVICE void fetch(unsigned char* shared, unsigned at) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
    UNROLLED for (int i = 0; i < COUNT; ++i) {
      if (ROWS % STRIDE != 0 && row + i * STRIDE >= ROWS) break;
      int count = i * STRIDE < rows ? left : 0, skip = 0;
      if (TRIANGULAR == 1) count = (int)min((long long)count, on + i * STRIDE + 1);
      if (TRIANGULAR == 2) skip = (int)min(on + i * STRIDE, (long long)PER_UNIT);
      copy_unit<ALIGN, TRIANGULAR != 0>(shared, at + row_place<UNITS>(row + i * STRIDE, unit), from + i * stride, count, skip);
    }
    from += TILE_K;
    left -= TILE_K;
    on -= TILE_K;
  }
};

/// TILE_K × COLUMNS of a row-major matrix, walking down its columns.
template <int COLUMNS, int ALIGN>
struct ColumnWalker {
  static constexpr int UNITS = B_PANEL / PER_UNIT;
  static constexpr int STRIDE = THREADS / UNITS;
  static constexpr int COUNT = (TILE_K + STRIDE - 1) / STRIDE;
  const T* from;
  long long width, stride;
  long long columns;  // from this thread's unit on
  int left;           // rows from this thread's first on

  DEVICE ColumnWalker(const T* matrix, long long width, long long columns_there, long long first_column, int first, int last) : width(width) {
    const int row = threadIdx.x / UNITS;
    const long long column = first_column + threadIdx.x % UNITS * PER_UNIT;
    from = matrix + (long long)(first + row) * width + column;
    stride = STRIDE * width;
    columns = columns_there - column;
    left = last - first - row;
  }
  DEVICE void fetch(unsigned char* shared, unsigned at) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
    UNROLLED for (int panel = 0; panel < COLUMNS / B_PANEL; ++panel) {
      const int count = (int)max(min(columns - panel * B_PANEL, (long long)PER_UNIT), 0ll);
      UNROLLED for (int i = 0; i < COUNT; ++i) {
        if (TILE_K % STRIDE != 0 && row + i * STRIDE >= TILE_K) break;
        copy_unit<ALIGN>(shared, at + panel * TILE_K * B_PANEL * (int)sizeof(T) + column_place<UNITS>(row + i * STRIDE, unit),
                         from + i * stride + panel * B_PANEL, i * STRIDE < left ? count : 0);
      }
    }
    from += TILE_K * width;
    left -= TILE_K;
  }
};

/// Tiles of b, whose rows run along its columns or, TRANSPOSED, along the depth.
template <bool TRANSPOSED, int COLUMNS, int ALIGN>
struct RightWalker : ColumnWalker<COLUMNS, ALIGN> {
  using ColumnWalker<COLUMNS, ALIGN>::ColumnWalker;
};
template <int COLUMNS, int ALIGN>
struct RightWalker<true, COLUMNS, ALIGN> : RowWalker<COLUMNS, ALIGN> {
  using RowWalker<COLUMNS, ALIGN>::RowWalker;
};
