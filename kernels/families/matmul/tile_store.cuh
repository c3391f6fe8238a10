// From accumulators to the result. A warp holds fragments of 16 × 8: sums[i][j] starts at row
// fragment_row(i), column warp_column() + 8 j of the tile; lane l has rows l / 4 and l / 4 + 8 of
// it, columns 2 (l % 4) and the next.

/// Eight accumulators, rounded.
DEVICE Units<T, 8> rounded(const Units<float, 4> (&floats)[2]) {
  Units<unsigned, 4> pairs;
  UNROLLED for (int i = 0; i < 4; ++i) pairs.element[i] = pack(
      floats[i / 2].element[i % 2 * 2], floats[i / 2].element[i % 2 * 2 + 1]);
  return *(const Units<T, 8>*)&pairs;
}

/// The number of a warp's fragments that make columns of the result; the others belong to the
/// second product of a pair, in the same order.
constexpr int MADE_N = FRAGMENTS_N / Epilogue::SUMS;

/// Stores sums whose epilogue reads elements of other tensors. The sums of 16 × 32 elements of a
/// warp wait in shared memory, so that a thread can read those elements in units of 16 bytes too;
/// it loads the elements of the next chunk before it finishes the current one.
template <class Ahead>
DEVICE void store_with_elements(float* staging, const Sums& sums, T* c, Tile tile, long long m,
                                long long n, const Epilogue& epilogue, const Ahead& ahead) {
  constexpr int ACROSS = FRAGMENTS_N / 4, CHUNKS = FRAGMENTS_M * ACROSS;
  const int lane = threadIdx.x % 32;
  // Offset of a 16-byte unit of a row of 32 floats, swizzled so that neither the writers of pairs
  // nor the readers of units have bank conflicts.
  const auto place = [](int row, int unit) {
    return row * 32 + (unit ^ (row & 3) * 2 ^ (row & 1)) * 4;
  };
  Epilogue::Element elements[2][2][8];
  const auto first_row = [&](int chunk) {
    return tile.row + fragment_row(chunk / ACROSS) + lane / 4;
  };
  const auto first_column = [&](int chunk) {
    return tile.column + warp_column() + chunk % ACROSS * 32 + lane % 4 * 8;
  };
  const auto ask = [&](int chunk) {
    UNROLLED for (int half = 0; half < 2; ++half) epilogue.elements(
        elements[chunk % 2][half], min(first_row(chunk) + half * 8, m - 1), first_column(chunk));
  };
  ask(0);
  UNROLLED for (int chunk = 0; chunk < CHUNKS; ++chunk) {
    if (chunk + 1 < CHUNKS) ask(chunk + 1);
    UNROLLED for (int j = 0; j < 4; ++j) {
      const auto& four = sums[chunk / ACROSS][chunk % ACROSS * 4 + j];
      UNROLLED for (int half = 0; half < 2; ++half) *
          (float2*)(staging + place(lane / 4 + half * 8, j * 2 + lane % 4 / 2) +
                    lane % 2 * 2) = make_float2(four[half * 2], four[half * 2 + 1]);
    }
    __syncwarp();
    UNROLLED for (int half = 0; half < 2; ++half) {
      const long long row = first_row(chunk) + half * 8, column = first_column(chunk);
      const Epilogue::Row epilogue_row = epilogue.row(min(row, m - 1));
      Units<float, 4> unit[2];
      UNROLLED for (int i = 0; i < 2; ++i) unit[i] = *(
          const Units<float, 4>*)(staging + place(lane / 4 + half * 8, lane % 4 * 2 + i));
      UNROLLED for (int e = 0; e < 8; ++e) {
        float& sum = unit[e / 4].element[e % 4];
        sum = epilogue(sum, 0.0f, epilogue_row, ahead.column((int)(column - tile.column) + e),
                       elements[chunk % 2][half][e], min(row, m - 1), min(column + e, n - 1));
      }
      if (row < m && column < n) put(c, row, column, m, n, rounded(unit));
    }
    __syncwarp();
  }
}

/// Rounds the sums and writes the tile, 16 × STORE_N of a warp at a time through shared memory, so
/// that whole units are written: behind the buffers where they are in use (STAGED_APART).
template <class Ahead>
DEVICE void store_result(unsigned char* shared, const Sums& sums, T* c, Tile tile, long long m,
                         long long n, const Epilogue& epilogue, const Ahead& ahead) {
  constexpr int STORE_N = MADE_N % 8 == 0 ? 64 : 32;
  constexpr int UNITS = STORE_N / 8, WIDTH = SCATTERED ? 1 : 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned char* staging = shared + (STAGED_APART ? STAGES * STAGE_BYTES : 0) +
                           warp * (Epilogue::ELEMENTS ? 2048 : 16 * UNITS * 16);
  if (!STAGED_APART) {
    wait_copies<0>();
    __syncthreads();  // all reads of the tiles are finished
  }
  if (Epilogue::ELEMENTS)
    return store_with_elements((float*)staging, sums, c, tile, m, n, epilogue, ahead);
  UNROLLED for (int i = 0; i < FRAGMENTS_M; ++i) {
    const long long top = tile.row + fragment_row(i) + lane / 4;
    UNROLLED for (int first = 0; first < MADE_N; first += UNITS) {
      UNROLLED for (int j = 0; j < UNITS; ++j) {
        const int inside = warp_column() + (first + j) * 8 + lane % 4 * 2;
        const Epilogue::Column left = ahead.column(inside), right = ahead.column(inside + 1);
        const long long column = min(tile.column + inside, n - 1), next = min(column + 1, n - 1);
        UNROLLED for (int half = 0; half < 2; ++half) {
          const auto &some = sums[i][first + j], &twins = sums[i][FRAGMENTS_N - MADE_N + first + j];
          const long long row = min(top + half * 8, m - 1);
          *(unsigned*)(staging + swizzled<UNITS>(lane / 4 + half * 8, j) + lane % 4 * 4) = pack(
              epilogue(some[half * 2], twins[half * 2], ahead.row(i, half), left, {}, row, column),
              epilogue(some[half * 2 + 1], twins[half * 2 + 1], ahead.row(i, half), right, {}, row,
                       next));
        }
      }
      __syncwarp();
#pragma unroll 4
      for (int at = lane * WIDTH; at < 16 * STORE_N; at += 32 * WIDTH) {
        const long long row = tile.row + fragment_row(i) + at / STORE_N,
                        column = tile.column + warp_column() + first * 8 + at % STORE_N;
        const unsigned char* from = staging + swizzled<UNITS>(at / STORE_N, at % STORE_N / 8) +
                                    at % 8 * sizeof(T);
        if (row < m && column < n) put(c, row, column, m, n, *(const Units<T, WIDTH>*)from);
      }
      __syncwarp();
    }
  }
}

/// The values of the epilogue by row and column, loaded when they are needed.
struct LoadedOnDemand {
  const Epilogue& epilogue;
  Tile tile;
  long long m, n;
  DEVICE Epilogue::Row row(int i, int half) const {
    return epilogue.row(min(tile.row + fragment_row(i) + threadIdx.x % 32 / 4 + half * 8, m - 1));
  }
  DEVICE Epilogue::Column column(int at) const {
    return epilogue.column(min(tile.column + at, n - 1));
  }
};
DEVICE void store_result(unsigned char* shared, const Sums& sums, T* c, Tile tile, long long m,
                         long long n, const Epilogue& epilogue = {}) {
  store_result(shared, sums, c, tile, m, n, epilogue, LoadedOnDemand{epilogue, tile, m, n});
}

/// The fetching warps have nothing to store, and blocks need no barrier before they end.
DEVICE void store_nothing() {}
DEVICE void leave() {}
