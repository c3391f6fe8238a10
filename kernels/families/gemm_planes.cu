// c[m, n] = a[m, k] · b[k, n] in float32 from the operands' planes (planes.cuh): the sum of the products of planes i and j with
// i + j < PLANES. The others are below the last bit that is kept.
//
// A tensor core cuts off what does not fit its accumulator, so that long sums drift towards zero. Therefore the products of
// the first planes are summed there for PROMOTE chunks at a time and then added, rounded to nearest, to sums in registers, while
// the tensor core works at the other products, whose drift is too small to matter.
//
// A single plane's errors hide that drift: its products are summed in the tensor core throughout.
//
// A group of four warps copies; each of GROUPS others multiplies 64 × TILE_N of the tile.
constexpr int GROUPS = TILE_M / 64;
constexpr int COPIER = GROUPS;
constexpr int THREADS = (GROUPS + 1) * 128;
constexpr int PANELS = TILE_N / LINES;
constexpr int FRAGMENTS = TILE_N / 8;
constexpr int STAGE_BYTES = (GROUPS + PANELS) * CHUNK_BYTES;
typedef float Sums[1][FRAGMENTS][4];

DEVICE void initialise(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
DEVICE void arrive(unsigned barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
DEVICE void expect_bytes(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
DEVICE void wait_for(unsigned barrier, unsigned parity) {
  unsigned done;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
  } while (done == 0);
}
DEVICE void copy_chunk(unsigned to, const unsigned char* from, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "n"(CHUNK_BYTES), "r"(barrier)
               : "memory");
}

/// The buffers in turn: the copying thread waits until a buffer is drained, the others until it is filled.
struct Ring {
  unsigned buffers, filled, drained;  // shared addresses
  int stage = 0;
  unsigned parity = 0;

  DEVICE explicit Ring(unsigned char* shared) {
    buffers = (unsigned)__cvta_generic_to_shared(shared);
    filled = buffers + STAGES * STAGE_BYTES;
    drained = filled + STAGES * 8;
  }
  DEVICE void step() {
    if (++stage < STAGES) return;
    stage = 0;
    parity ^= 1;
  }
  DEVICE unsigned buffer() const { return buffers + stage * STAGE_BYTES; }
  DEVICE unsigned filled_barrier() const { return filled + stage * 8; }
  DEVICE unsigned drained_barrier(int which) const { return drained + which * 8; }
};

DEVICE void copy_tiles(Ring ring, const unsigned char* a, const unsigned char* b, long long m, long long n, long long chunks) {
  for (unsigned index = blockIdx.x; index < tile_count(m, n); index += gridDim.x) {
    const Tile tile = tile_at(index, m, n);
    for (long long chunk = 0; chunk < chunks; ++chunk, ring.step()) {
      wait_for(ring.drained_barrier(ring.stage), ring.parity ^ 1);
      expect_bytes(ring.filled_barrier(), STAGE_BYTES);
#pragma unroll
      for (int i = 0; i < GROUPS + PANELS; ++i) {
        const unsigned char* from = i < GROUPS ? a + ((tile.row / LINES + i) * chunks + chunk) * CHUNK_BYTES
                                               : b + ((tile.column / LINES + i - GROUPS) * chunks + chunk) * CHUNK_BYTES;
        copy_chunk(ring.buffer() + i * CHUNK_BYTES, from, ring.filled_barrier());
      }
    }
  }
}

DEVICE void clear(Sums& sums) {
#pragma unroll
  for (int j = 0; j < FRAGMENTS; ++j) sums[0][j][0] = sums[0][j][1] = sums[0][j][2] = sums[0][j][3] = 0;
}

/// Operands of one depth of 16, `step`, in plane `plane` of the buffer at `at`.
DEVICE unsigned long long a_operand(unsigned at, int plane, int step) {
  const unsigned from = at + threadIdx.x / 128 * CHUNK_BYTES + plane * PLANE_BYTES + step * 32;
  return 2ull << 62 | (unsigned long long)(512 >> 4) << 32 | (from & 0x3ffff) >> 4;  // swizzled among 64 bytes, eight rows are 512
}
DEVICE unsigned long long b_operand(unsigned at, int plane, int step) {
  return operand(at + GROUPS * CHUNK_BYTES + plane * PLANE_BYTES + step * 2048, CHUNK_BYTES);
}

/// Starts the products of the first planes; `anew` forgets earlier sums.
DEVICE void multiply_large(float (&large)[FRAGMENTS][4], unsigned buffer, bool anew) {
  if (anew)
    multiply_anew(large, a_operand(buffer, 0, 0), b_operand(buffer, 0, 0));
  else
    multiply(large, a_operand(buffer, 0, 0), b_operand(buffer, 0, 0));
#pragma unroll
  for (int step = 1; step < DEPTH / 16; ++step) multiply(large, a_operand(buffer, 0, step), b_operand(buffer, 0, step));
  commit_products();
}
/// Starts those of all other pairs of planes, the smallest first.
DEVICE void multiply_small(float (&small)[FRAGMENTS][4], unsigned buffer) {
#pragma unroll
  for (int order = PLANES - 1; order > 0; --order) {
#pragma unroll
    for (int plane = 0; plane <= order; ++plane) {
#pragma unroll
      for (int step = 0; step < DEPTH / 16; ++step) multiply(small, a_operand(buffer, plane, step), b_operand(buffer, order - plane, step));
    }
  }
  commit_products();
}

/// One tile's sums of a single plane.
DEVICE void multiply_only(Ring& ring, int chunks, Sums& sums) {
  clear(sums);
  int last = 0;
  for (int chunk = 0; chunk < chunks; ++chunk, ring.step()) {
    wait_for(ring.filled_barrier(), ring.parity);
    start_products();
    multiply_large(sums[0], ring.buffer(), false);
    wait_products<1>();  // for those of the last chunk
    if (chunk > 0 && threadIdx.x % 32 == 0) arrive(ring.drained_barrier(last));
    last = ring.stage;
  }
  wait_products<0>();
  settle(sums);
  if (threadIdx.x % 32 == 0) arrive(ring.drained_barrier(last));
}

/// One tile's sums: those of the first planes, and the others, 2^LOW_SHIFT times too large.
DEVICE void multiply_chunks(Ring& ring, int chunks, Sums& sums, Sums& small) {
  clear(small);
  if (PLANES == 1) return multiply_only(ring, chunks, sums);
  Sums large;
  clear(sums);
  int last = 0;
  for (int chunk = 0; chunk < chunks; chunk += PROMOTE) {
#pragma unroll
    for (int i = 0; i < PROMOTE; ++i, ring.step()) {
      wait_for(ring.filled_barrier(), ring.parity);
      start_products();
      multiply_large(large[0], ring.buffer(), i == 0);
      wait_products<1>();  // for the small products of the last chunk
      if (chunk + i > 0 && threadIdx.x % 32 == 0) arrive(ring.drained_barrier(last));
      last = ring.stage;
      multiply_small(small[0], ring.buffer());
    }
    wait_products<1>();  // for the large ones
    settle(large);
#pragma unroll
    for (int j = 0; j < FRAGMENTS; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[0][j][e] += large[0][j][e];
    }
  }
  wait_products<0>();
  settle(small);
  if (threadIdx.x % 32 == 0) arrive(ring.drained_barrier(last));
}

/// Whether planes may have lost more of a sum than float32 does: always where infinities or NaNs were; with a wide operand when
/// the sum is small beside k · 2^30 · 2^-FULL_RANGE: what rounding the operands left out may then be more than float32's roundoff.
DEVICE bool suspect(float sum, int row_scale, int column_scale, long long k) {
  const int marks = row_scale | column_scale;
  return (marks & ODD) || ((marks & WIDE) && fabsf(sum) < power_of_two(2 * TOP_EXPONENT + 2 - FULL_RANGE) * (float)k);
}

/// Scales the sums back and writes them. suspects[rows of 16][tiles along n] tells `repair` where one of them is suspect.
DEVICE void store_sums(const Sums& sums, const Sums& small, float* c, const int* row_scales, const int* column_scales, unsigned char* suspects,
                       Tile tile, long long m, long long n, long long k) {
  const int lane = threadIdx.x % 32;
  const long long first_row = tile.row + threadIdx.x / 32 * 16, row = first_row + lane / 4;
  const int scales[2] = {row < m ? row_scales[row] : 0, row + 8 < m ? row_scales[row + 8] : 0};
  bool any = false;
#pragma unroll
  for (int j = 0; j < FRAGMENTS; ++j) {
    const long long column = tile.column + j * 8 + lane % 4 * 2;
    const int left = column < n ? column_scales[column] : 0, right = column + 1 < n ? column_scales[column + 1] : 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row + half * 8 >= m || column >= n) continue;
      const float x = sums[0][j][half * 2] + small[0][j][half * 2] * (1.0f / (1 << LOW_SHIFT));
      const float y = sums[0][j][half * 2 + 1] + small[0][j][half * 2 + 1] * (1.0f / (1 << LOW_SHIFT));
      any |= suspect(x, scales[half], left, k) || (column + 1 < n && suspect(y, scales[half], right, k));
      const float2 pair = make_float2(ldexpf(x, -shift_of(scales[half]) - shift_of(left)), ldexpf(y, -shift_of(scales[half]) - shift_of(right)));
      float* to = c + (row + half * 8) * n + column;
      if (B_ALIGNED) {
        *(float2*)to = pair;
      } else {
        to[0] = pair.x;
        if (column + 1 < n) to[1] = pair.y;
      }
    }
  }
  any = __any_sync(~0u, any);
  if (lane == 0) suspects[first_row / 16 * ((n + TILE_N - 1) / TILE_N) + tile.column / TILE_N] = any;
}

/// Third step: the product.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    multiply_planes(const unsigned char* __restrict__ a, const unsigned char* __restrict__ b, const int* __restrict__ row_scales,
                    const int* __restrict__ column_scales, float* __restrict__ c, unsigned char* __restrict__ suspects, long long m, long long n,
                    long long k) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Ring ring(shared);
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      initialise(ring.filled + i * 8, 1);
      initialise(ring.drained + i * 8, GROUPS * 4);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const int chunks = (int)chunks_along(k);
  if (threadIdx.x / 128 == COPIER) {
    if (GROUPS > 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x % 128 == 0) copy_tiles(ring, a, b, m, n, chunks);
  } else {
    if (GROUPS > 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    for (unsigned index = blockIdx.x; index < tile_count(m, n); index += gridDim.x) {
      Sums sums, small;
      multiply_chunks(ring, chunks, sums, small);
      store_sums(sums, small, c, row_scales, column_scales, suspects, tile_at(index, m, n), m, n, k);
    }
  }
}

/// Last step: where a result is suspect, 16 × TILE_N of them once more, one product after the other in float32.
extern "C" __global__ void __launch_bounds__(TILE_N) repair(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                                           const unsigned char* __restrict__ suspects, long long m, long long n, long long k) {
  __shared__ float rows[16][16];
  __shared__ bool suspected[TILE_N];
  const long long tiles = (n + TILE_N - 1) / TILE_N, all = (m + 15) / 16 * tiles;
  for (long long first = blockIdx.x; first < all; first += (long long)gridDim.x * TILE_N) {
    const long long mine = first + (long long)threadIdx.x * gridDim.x;
    suspected[threadIdx.x] = mine < all && suspects[mine] == 1;
    if (!__syncthreads_or(suspected[threadIdx.x])) continue;
    for (int i = 0; i < TILE_N; ++i) {
      if (!suspected[i]) continue;
      const long long at = first + (long long)i * gridDim.x;
      const long long row = at / tiles * 16, column = at % tiles * TILE_N + threadIdx.x;
      float sums[16] = {};
      for (long long depth = 0; depth < k; depth += 16) {
        __syncthreads();
        for (int e = threadIdx.x; e < 256; e += TILE_N)
          rows[e % 16][e / 16] = row + e / 16 < m && depth + e % 16 < k ? a[(row + e / 16) * k + depth + e % 16] : 0.0f;
        __syncthreads();
        if (column >= n) continue;
        for (int p = 0; p < 16 && depth + p < k; ++p) {
          const float factor = b[(depth + p) * n + column];
#pragma unroll
          for (int r = 0; r < 16; ++r) sums[r] = fmaf(rows[p][r], factor, sums[r]);
        }
      }
      if (column >= n) continue;
      for (int r = 0; r < 16 && row + r < m; ++r) c[(row + r) * n + column] = sums[r];
    }
    __syncthreads();
  }
}
