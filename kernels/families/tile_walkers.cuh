// How tiles of the operands travel to shared memory: asynchronous copies of 16 bytes, zeros for what lies outside. Tiles of a
// and of a transposed b are [rows][TILE_K]; a row-major b's is cut into panels of B_PANEL columns, each [TILE_K][B_PANEL].

/// One unit global → shared, of which `count` elements exist; ALIGN = elements that are sure to be contiguous and aligned.
template <int ALIGN>
DEVICE void copy_unit(unsigned char* shared, unsigned at, const T* from, int count) {
  const unsigned to = (unsigned)__cvta_generic_to_shared(shared) + at;
  if (ALIGN == 8) {
    copy_async(to, from, count > 0 ? 16 : 0);
  } else if (ALIGN == 1) {
    gather(shared + at, from, count);
  } else {
#pragma unroll
    for (int i = 0; i < 8; i += ALIGN) {
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to + i * 2), "l"(from + i), "n"(ALIGN * 2), "r"(count > i ? ALIGN * 2 : 0)
                   : "memory");
    }
  }
}

/// ROWS × TILE_K of a row-major matrix, walking along its rows. A thread keeps its unit column.
template <int ROWS, int ALIGN>
struct RowWalker {
  static constexpr int UNITS = TILE_K / 8;
  static constexpr int STRIDE = THREADS / UNITS;
  static constexpr int COUNT = (ROWS + STRIDE - 1) / STRIDE;
  const T* from;
  long long stride;  // elements between this thread's rows
  int rows;          // that exist, counted from this thread's first
  int left;          // elements of the row from this thread's unit on

  DEVICE RowWalker(const T* matrix, long long width, long long height, long long first_row, int first, int last) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
    const bool inside = first_row + row < height && (STRIDE <= ROWS || row < ROWS);
    from = matrix + (inside ? first_row + row : 0) * width + first + unit * 8;
    stride = STRIDE * width;
    rows = inside ? (int)min(height - first_row - row, (long long)ROWS) : 0;
    left = last - first - unit * 8;
  }
  DEVICE void fetch(unsigned char* shared, unsigned at) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (ROWS % STRIDE != 0 && row + i * STRIDE >= ROWS) break;
      copy_unit<ALIGN>(shared, at + swizzled<UNITS>(row + i * STRIDE, unit), from + i * stride, i * STRIDE < rows ? left : 0);
    }
    from += TILE_K;
    left -= TILE_K;
  }
};

/// TILE_K × COLUMNS of a row-major matrix, walking down its columns.
template <int COLUMNS, int ALIGN>
struct ColumnWalker {
  static constexpr int UNITS = B_PANEL / 8;
  static constexpr int STRIDE = THREADS / UNITS;
  static constexpr int COUNT = (TILE_K + STRIDE - 1) / STRIDE;
  const T* from;
  long long stride;
  long long columns;  // from this thread's unit on
  int left;           // rows from this thread's first on

  DEVICE ColumnWalker(const T* matrix, long long width, long long first_column, int first, int last) {
    const int row = threadIdx.x / UNITS;
    const long long column = first_column + threadIdx.x % UNITS * 8;
    from = matrix + (long long)(first + row) * width + column;
    stride = STRIDE * width;
    columns = width - column;
    left = last - first - row;
  }
  DEVICE void fetch(unsigned char* shared, unsigned at, long long width) {
    const int row = threadIdx.x / UNITS, unit = threadIdx.x % UNITS;
#pragma unroll
    for (int panel = 0; panel < COLUMNS / B_PANEL; ++panel) {
      const int count = (int)max(min(columns - panel * B_PANEL, 8ll), 0ll);
#pragma unroll
      for (int i = 0; i < COUNT; ++i) {
        if (TILE_K % STRIDE != 0 && row + i * STRIDE >= TILE_K) break;
        copy_unit<ALIGN>(shared, at + panel * TILE_K * B_PANEL * 2 + swizzled<UNITS>(row + i * STRIDE, unit),
                         from + i * stride + panel * B_PANEL, i * STRIDE < left ? count : 0);
      }
    }
    from += TILE_K * width;
    left -= TILE_K;
  }
};
