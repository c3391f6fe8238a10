// c[m, n] = a[m, k] · b[k, n] (b may be [n, k]) in float32 from the planes of the operands
// (split_float.cuh): the sum of the products of planes i of a and j of b with i + j < PLANES. With
// three planes these are six products of nine; the other three are below the last bit of a float32:
//              b0         b1         b2
//     a0    large      small      small
//     a1    small      small        -
//     a2    small        -          -
// A tensor core truncates the bits that do not fit its accumulator, so that long sums drift towards
// zero. Therefore the large products (a0 · b0) are summed there for PROMOTE chunks at a time and
// then added, rounded to nearest, to sums in registers ("promoted"), while the tensor core
// multiplies the small ones. The small products are promoted every PROMOTE_SMALL chunks. With a
// single plane its own error hides the drift: sums stay in the tensor core throughout.
//
// Steps: (1) magnitudes, if planes are float16; (2) split the operands into planes in memory; (3)
// this product: one warpgroup copies, each of GROUPS others multiplies 64 x TILE_N of a tile; (4)
// `repair` computes the 16 x TILE_N pieces again, with float32 fused multiply-adds, whose flag step
// (3) has set because a result is not finite or smaller than the error that tiny elements may have
// caused.
constexpr int PROMOTE_SMALL = 16;  // chunks: a multiple of PROMOTE
constexpr int GROUPS = TILE_M / 64;
constexpr int COPIER = GROUPS;
constexpr int THREADS = (GROUPS + 1) * 128;
constexpr int PANELS = TILE_N / LINES;
constexpr int FRAGMENTS = TILE_N / 8;
// A transposed b is read in groups of eight rows of one plane: in a buffer each plane lies side by
// side over all panels.
constexpr int PIECES = B_TRANSPOSED ? PLANES : 1, PIECE_BYTES = CHUNK_BYTES / PIECES;
typedef float Sums[1][FRAGMENTS][4];
typedef Ring<STAGES, STAGE_BYTES> Buffers;

DEVICE void copy_tiles(Buffers ring, const unsigned char* a, const unsigned char* b, long long m,
                       long long n, long long chunks) {
  for (unsigned index = blockIdx.x; index < tile_count(m, n); index += gridDim.x) {
    const Tile tile = tile_at(index, m, n);
    for (long long chunk = 0; chunk < chunks; ++chunk, ring.step()) {
      ring.await_free();
      expect_bytes(ring.full(), STAGE_BYTES);
      UNROLLED for (int i = 0; i < GROUPS; ++i) copy_bytes(
          ring.buffer() + i * CHUNK_BYTES,
          a + ((tile.row / LINES + i) * chunks + chunk) * CHUNK_BYTES, CHUNK_BYTES, ring.full());
      UNROLLED for (int i = 0; i < PANELS * PIECES; ++i) {
        const unsigned char* from = b +
                                    ((tile.column / LINES + i % PANELS) * chunks + chunk) *
                                        CHUNK_BYTES +
                                    i / PANELS * PIECE_BYTES;
        copy_bytes(ring.buffer() + GROUPS * CHUNK_BYTES + i * PIECE_BYTES, from, PIECE_BYTES,
                   ring.full());
      }
    }
  }
}

/// sums += scale · others, and others = 0.
DEVICE void promote(Sums& sums, Sums& others, float scale) {
  UNROLLED for (int j = 0; j < FRAGMENTS; ++j) {
    UNROLLED for (int e = 0; e < 4; ++e) {
      sums[0][j][e] = fmaf(others[0][j][e], scale, sums[0][j][e]);
      others[0][j][e] = 0;
    }
  }
}

/// wgmma descriptors of 16 elements along k, number `step`, of plane `plane` in the buffer at `at`.
DEVICE unsigned long long narrow_operand(unsigned at) {
  // 64-byte swizzle: eight rows are 512 bytes
  return 2ull << 62 | (unsigned long long)(512 >> 4) << 32 | (at & 0x3ffff) >> 4;
}
DEVICE unsigned long long a_operand(unsigned at, int plane, int step) {
  return narrow_operand(at + threadIdx.x / 128 * CHUNK_BYTES + plane * PLANE_BYTES + step * 32);
}
DEVICE unsigned long long b_operand(unsigned at, int plane, int step) {
  if (B_TRANSPOSED)
    return narrow_operand(at + GROUPS * CHUNK_BYTES + plane * PANELS * PLANE_BYTES + step * 32);
  return operand(at + GROUPS * CHUNK_BYTES + plane * PLANE_BYTES + step * 2048, CHUNK_BYTES);
}

/// Starts the products of the first planes; `anew` forgets earlier sums.
DEVICE void multiply_large(float (&large)[FRAGMENTS][4], unsigned buffer, bool anew) {
  if (anew)
    multiply<false>(large, a_operand(buffer, 0, 0), b_operand(buffer, 0, 0));
  else
    multiply(large, a_operand(buffer, 0, 0), b_operand(buffer, 0, 0));
  UNROLLED for (int step = 1; step < DEPTH / 16; ++step)
      multiply(large, a_operand(buffer, 0, step), b_operand(buffer, 0, step));
  commit_products();
}
/// Starts those of all other pairs of planes, the smallest first.
DEVICE void multiply_small(float (&small)[FRAGMENTS][4], unsigned buffer) {
  UNROLLED for (int order = PLANES - 1; order > 0; --order) {
    UNROLLED for (int plane = 0; plane <= order; ++plane) {
      UNROLLED for (int step = 0; step < DEPTH / 16; ++step)
          multiply(small, a_operand(buffer, plane, step), b_operand(buffer, order - plane, step));
    }
  }
  commit_products();
}

/// Computes one tile's sums. With a single plane they stay in the tensor core.
DEVICE void multiply_chunks(Buffers& ring, int chunks, Sums& sums) {
  constexpr float SMALL = 1.0f / (1 << LOW_SHIFT);
  constexpr bool SINGLE = PLANES == 1;
  Sums large, small;  // of the first planes; of the others
  clear(sums);
  clear(small);
  Buffers last = ring;
  for (int chunk = 0; chunk < chunks; chunk += PROMOTE) {
    UNROLLED for (int i = 0; i < PROMOTE; ++i, ring.step()) {
      ring.await_full();
      start_products();
      multiply_large(SINGLE ? sums[0] : large[0], ring.buffer(), !SINGLE && i == 0);
      wait_products<1>();  // for the small products of the last chunk, or all of its
      if (chunk + i > 0) last.release();
      last = ring;
      if (!SINGLE) multiply_small(small[0], ring.buffer());
    }
    if (SINGLE) continue;
    wait_products<1>();  // for the large ones
    settle(large);
    promote(sums, large, 1);
    if (chunk % PROMOTE_SMALL == PROMOTE_SMALL - PROMOTE) {
      wait_products<0>();
      settle(small);
      promote(sums, small, SMALL);
    }
  }
  wait_products<0>();
  settle(SINGLE ? sums : small);
  if (!SINGLE) promote(sums, small, SMALL);
  last.release();
}

/// Sums below this bound may have lost more than float32's roundoff (TF32's, with one plane) to
/// tiny elements: the rounding error of all tiny elements times the other operand's largest
/// element.
DEVICE float error_bound(const Extent* a_extents, const Extent* b_extents, Tile tile, long long k) {
  const int groups = groups_along(k);
  Extent a = {0, 0}, b = {0, 0};
  for (int i = threadIdx.x % 32; i < groups; i += 32) {
    extend(a, a_extents[(tile.row / LINES + threadIdx.x / 128) * groups + i]);
    UNROLLED for (int panel = 0; panel < PANELS; ++panel)
        extend(b, b_extents[(tile.column / LINES + panel) * groups + i]);
  }
  extend_over_warp(a);
  extend_over_warp(b);
  const float met_by_a = (float)min((long long)a.tiny, k) * __uint_as_float(b.largest);
  const float met_by_b = (float)min((long long)b.tiny, k) * __uint_as_float(a.largest);
  return power_of_two(TINY_ERROR + (PLANES == 1 ? 12 : 24)) * (met_by_a + met_by_b);
}

/// Scales the sums back and stores them. repair_flags[rows of 16][tiles along n] marks pieces where
/// a sum is below `bound` or not finite, for `repair`.
DEVICE void store_sums(const Sums& sums, float* c, unsigned char* repair_flags, float bound,
                       const int* row_scales, const int* column_scales, Tile tile, long long m,
                       long long n, const Epilogue& epilogue) {
  const int lane = threadIdx.x % 32;
  const long long first_row = tile.row + threadIdx.x / 32 * 16;
  bool any = false;
  UNROLLED for (int half = 0; half < 2; ++half) {
    const long long row = first_row + lane / 4 + half * 8;
    const int row_scale = SCALED && row < m ? row_scales[row] : 0;
    const Epilogue::Row epilogue_row = epilogue.row(min(row, m - 1));
    Epilogue::Element elements[FRAGMENTS][2];
    UNROLLED for (int j = 0; j < FRAGMENTS; ++j)
        epilogue.elements(elements[j], min(row, m - 1), tile.column + j * 8 + lane % 4 * 2);
    UNROLLED for (int j = 0; j < FRAGMENTS; ++j) {
      const long long column = tile.column + j * 8 + lane % 4 * 2;
      if (row >= m || column >= n) continue;
      float x = sums[0][j][half * 2], y = sums[0][j][half * 2 + 1];
      any |= !(fabsf(x) >= bound && fabsf(x) <= 3.4e38f && fabsf(y) >= bound &&
               fabsf(y) <= 3.4e38f);
      if (SCALED) {
        x = ldexpf(x, -row_scale - column_scales[column]);
        y = ldexpf(y, -row_scale - (column + 1 < n ? column_scales[column + 1] : 0));
      }
      x = epilogue(x, 0.0f, epilogue_row, epilogue.column(column), elements[j][0], row, column);
      y = epilogue(y, 0.0f, epilogue_row, epilogue.column(min(column + 1, n - 1)), elements[j][1],
                   row, min(column + 1, n - 1));
      put(c, row, column, m, n, Units<float, 2>{x, y});
    }
  }
  any = __any_sync(~0u, any);
  if (lane == 0)
    repair_flags[first_row / 16 * ((n + TILE_N - 1) / TILE_N) + tile.column / TILE_N] = any;
}

/// Second step: the product.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    multiply_planes(const unsigned char* __restrict__ a, const unsigned char* __restrict__ b,
                    const Extent* __restrict__ a_extents, const Extent* __restrict__ b_extents,
                    const int* __restrict__ row_scales, const int* __restrict__ column_scales,
                    float* __restrict__ c, unsigned char* __restrict__ repair_flags, long long m,
                    long long n, long long k EPILOGUE_PARAMETERS) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Buffers ring(shared_address(shared), shared_address(shared) + STAGES * STAGE_BYTES);
  if (threadIdx.x == 0) ring.make(GROUPS * 4);
  __syncthreads();
  const long long chunks = chunks_along(k), tiles_across = (n + TILE_N - 1) / TILE_N;
  const long long a_bands = bands_of(m, TILE_M), b_bands = bands_of(n, TILE_N);
  a = of_batch(a, A_BATCHED, a_bands * chunks * CHUNK_BYTES),
  b = of_batch(b, B_BATCHED, b_bands * chunks * CHUNK_BYTES);
  a_extents = of_batch(a_extents, A_BATCHED, a_bands * groups_along(k)),
  b_extents = of_batch(b_extents, B_BATCHED, b_bands * groups_along(k));
  if (threadIdx.x / 128 == COPIER) {
    if (GROUPS > 1) give_registers<40>();
    if (threadIdx.x % 128 == 0) copy_tiles(ring, a, b, m, n, chunks);
  } else {
    if (GROUPS > 1) take_registers<232>();
    for (unsigned index = blockIdx.x; index < tile_count(m, n); index += gridDim.x) {
      const Tile tile = tile_at(index, m, n);
      const float bound = error_bound(a_extents, b_extents, tile, k);
      Sums sums;
      multiply_chunks(ring, (int)chunks, sums);
      store_sums(sums, c + blockIdx.y * m * n,
                 repair_flags + blockIdx.y * (a_bands * (LINES / 16) * tiles_across), bound,
                 of_batch(row_scales, A_BATCHED, m), of_batch(column_scales, B_BATCHED, n), tile, m,
                 n, EPILOGUE(blockIdx.y));
    }
  }
}

/// Last step: computes 16 × TILE_N results again, one product after the other in float32, where the
/// flag is set.
extern "C" __global__ void __launch_bounds__(TILE_N)
    repair(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
           const unsigned char* __restrict__ repair_flags, long long m, long long n,
           long long k EPILOGUE_PARAMETERS) {
  __shared__ float rows[16][16];
  __shared__ bool suspected[TILE_N];
  const long long tiles = (n + TILE_N - 1) / TILE_N, all = (m + 15) / 16 * tiles;
  a = of_batch(a, A_BATCHED, m * k), b = of_batch(b, B_BATCHED, n * k), c += blockIdx.y * m * n;
  repair_flags += blockIdx.y * (bands_of(m, TILE_M) * (LINES / 16) * tiles);
  const Epilogue epilogue = EPILOGUE(blockIdx.y);
  for (long long first = blockIdx.x; first < all; first += (long long)gridDim.x * TILE_N) {
    const long long mine = first + (long long)threadIdx.x * gridDim.x;
    suspected[threadIdx.x] = mine < all && repair_flags[mine] == 1;
    if (!__syncthreads_or(suspected[threadIdx.x])) continue;
    for (int i = 0; i < TILE_N; ++i) {
      if (!suspected[i]) continue;
      const long long at = first + (long long)i * gridDim.x;
      const long long row = at / tiles * 16, column = at % tiles * TILE_N + threadIdx.x;
      float sums[16] = {};
      for (long long depth = 0; depth < k; depth += 16) {
        __syncthreads();
        for (int e = threadIdx.x; e < 256; e += TILE_N)
          rows[e % 16][e / 16] = row + e / 16 < m && depth + e % 16 < k
                                     ? a[(row + e / 16) * k + depth + e % 16]
                                     : 0.0f;
        __syncthreads();
        if (column >= n) continue;
        float factors[16];
        UNROLLED for (int p = 0; p < 16; ++p)
            factors[p] = depth + p < k
                             ? b[B_TRANSPOSED ? column * k + depth + p : (depth + p) * n + column]
                             : 0.0f;
        UNROLLED for (int p = 0; p < 16; ++p) {
          UNROLLED for (int r = 0; r < 16; ++r) sums[r] = fmaf(rows[p][r], factors[p], sums[r]);
        }
      }
      if (column >= n) continue;
      for (int r = 0; r < 16 && row + r < m; ++r)
        c[(row + r) * n + column] = epilogue.at(sums[r],
                                                ((long long)blockIdx.y * m + row + r) * n + column);
    }
    __syncthreads();
  }
}
