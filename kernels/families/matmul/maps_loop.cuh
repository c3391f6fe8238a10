// The main loop of matrix products on Hopper where tensor maps copy: one thread fetches boxes of a
// and b, groups of four warps multiply, GROUPS / SHARING tiles of the result at a time. A pair of
// barriers per buffer says when it is full and when it is free again.

constexpr int CONSUMERS = GROUPS * 128;
// One thread fetches. It belongs to a warp, or to a warpgroup that gives its registers to the
// groups with two sets of sums.
constexpr int FETCHERS = PROMOTE > 0 && GROUPS > 1 ? 128 : 32;
constexpr int FETCHER_REGISTERS = 40,
              CONSUMER_REGISTERS = (512 - FETCHER_REGISTERS) / GROUPS / 8 * 8;
constexpr int THREADS = CONSUMERS + FETCHERS;
constexpr int STAGING = STAGES * STAGE_BYTES;  // of the store, 2048 bytes a warp
constexpr int BARRIERS = STAGING + CONSUMERS / 32 * 2048;
// Values of the epilogue for the columns of a group's tile.
constexpr int COLUMNS = BARRIERS + STAGES * 16;
constexpr bool STAGED_APART = true;

typedef Ring<STAGES, STAGE_BYTES> Buffers;

DEVICE void wait_for_consumers() { asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory"); }

/// Clears the rows of a that the tensor cores read and no copy fills.
DEVICE void clear_rows(unsigned char* shared) {
  constexpr int UNITS = (TILE_M - A_ROWS) * 8;
  for (int at = threadIdx.x; at < STAGES * UNITS; at += THREADS) {
    *(uint4*)(shared + at / UNITS * STAGE_BYTES + A_ROWS * 128 + at % UNITS * 16) = make_uint4(
        0, 0, 0, 0);
  }
  fence_async_proxy();
}

/// `twin` is the second b of a pair of products: its columns follow those of the first. Operands
/// that no earlier kernel writes are fetched while that kernel ends.
DEVICE void fetch(Buffers ring, const CUtensorMap& a, const CUtensorMap& b, const CUtensorMap& twin,
                  unsigned all, long long m, long long n, long long k) {
  constexpr unsigned long long A_POLICY = STREAM > 1 ? EVICT_FIRST : EVICT_NORMAL,
                               B_POLICY = STREAM > 0 ? EVICT_FIRST : EVICT_NORMAL;
  constexpr int COLUMNS_AT_ONCE = B_TRANSPOSED ? RESULT_N : B_PANEL;
  const auto fetch_b = [&](const Buffers& to, const Work& work, int at) {
    expect_bytes(to.full(), STAGE_BYTES - (TILE_M - A_ROWS) * 128);
    UNROLLED for (int first = 0; first < TILE_N; first += COLUMNS_AT_ONCE) {
      const int depth_at = at * TILE_K, column = (int)work.tile.column + first % RESULT_N;
      copy_box(to.buffer() + A_BYTES + first * 128, first < RESULT_N ? b : twin,
               B_TRANSPOSED ? depth_at : column, B_TRANSPOSED ? column : depth_at,
               B_BATCHED ? (int)work.batch : 0, to.full(), B_POLICY);
    }
  };
  int early = 0;  // buffers that only wait for a
  if (B_GIVEN) {
    const Work work = work_at(blockIdx.x, m, n, k);
    Buffers to = ring;
    for (; early < STAGES && work.depth.first + early < work.depth.last; ++early, to.step())
      fetch_b(to, work, work.depth.first + early);
  }
  await_launch_before();
  for (unsigned index = blockIdx.x; index < all; index += gridDim.x) {
    const Work work = work_at(index, m, n, k);
    for (int at = work.depth.first; at < work.depth.last; ++at, ring.step()) {
      if (early > 0) {
        --early;
      } else {
        ring.await_free();
        fetch_b(ring, work, at);
      }
      copy_box(ring.buffer(), a, at * TILE_K, (int)work.tile.row, A_BATCHED ? (int)work.batch : 0,
               ring.full(), A_POLICY);
    }
  }
}

/// The epilogue's values for the rows and columns of a thread's tile: loaded before the products,
/// shared with the warpgroup after them.
struct Ahead {
  Epilogue::Row rows[FRAGMENTS_M][2];
  Epilogue::Column mine[(RESULT_N + 127) / 128];
  const Epilogue::Column* columns;

  DEVICE Ahead(const Epilogue& epilogue, unsigned char* shared, Tile tile, long long m, long long n)
      : columns((const Epilogue::Column*)(shared + COLUMNS) + threadIdx.x / 128 * RESULT_N) {
    UNROLLED for (int i = 0; i < FRAGMENTS_M; ++i) {
      UNROLLED for (int half = 0; half < 2; ++half) rows[i][half] = epilogue.row(
          min(tile.row + fragment_row(i) + threadIdx.x % 32 / 4 + half * 8, m - 1));
    }
    UNROLLED for (int i = 0; i * 128 < RESULT_N; ++i)
        mine[i] = epilogue.column(min(tile.column + i * 128 + threadIdx.x % 128, n - 1));
  }
  DEVICE void give() const {
    if (Epilogue::COLUMN_BYTES == 0) return;
    UNROLLED for (int i = 0; i * 128 < RESULT_N; ++i) {
      const int at = i * 128 + threadIdx.x % 128;
      if (at < RESULT_N) ((Epilogue::Column*)columns)[at] = mine[i];
    }
    asm volatile("bar.sync %0, 128;" ::"r"(4 + threadIdx.x / 128) : "memory");
  }
  DEVICE Epilogue::Row row(int i, int half) const { return rows[i][half]; }
  DEVICE Epilogue::Column column(int at) const {
    return Epilogue::COLUMN_BYTES == 0 ? Epilogue::Column{} : columns[at];
  }
};

/// Groups that alternate between tiles also alternate between buffers: a barrier's parity only
/// distinguishes one round from the next. Set 0 or 1 waits until the other set has seen its last
/// full buffer.
DEVICE int turn_set() { return threadIdx.x / 128 / SHARING; }
DEVICE void wait_for_turn() {
  asm volatile("bar.sync %0, %1;" ::"r"(2 + turn_set()), "n"(CONSUMERS) : "memory");
}
DEVICE void pass_turn() {
  asm volatile("bar.arrive %0, %1;" ::"r"(3 - turn_set()), "n"(CONSUMERS) : "memory");
}

/// For a triangular a, zeros replace the elements of this group's rows, the first of which is
/// `row`, that are zero at `depth` and behind it.
DEVICE void clear_triangle(unsigned buffer, long long row, int depth) {
  const bool crosses = TRIANGLE == 1 ? depth + TILE_K - 1 > row
                                     : TRIANGLE == 2 && depth < row + GROUP_ROWS - 1;
  if (!crosses) return;
  for (int i = threadIdx.x % 128; i < GROUP_ROWS * 8; i += 128) {
    const int below = i / 8, unit = i % 8;
    const long long diagonal = row + below - depth - unit * 8;
    Operand* eight = (Operand*)__cvta_shared_to_generic(buffer + (group_row() + below) * 128 +
                                                        (unit ^ (below & 7)) * 16);
    UNROLLED for (int e = 0; e < 8; ++e) {
      if (TRIANGLE == 1 ? e > diagonal : e < diagonal) eight[e] = Operand(0.0f);
    }
  }
  fence_async_proxy();
  asm volatile("bar.sync %0, 128;" ::"r"(4 + threadIdx.x / 128) : "memory");
}

/// Tensor cores accumulate 8-bit floats with fewer bits than float32: the sums of PROMOTE buffers
/// are therefore added up in registers.
DEVICE void multiply_promoted(Buffers& ring, Sums& sums, Depth depth) {
  Sums part;
  for (int at = depth.first; at < depth.last; at += PROMOTE) {
    Buffers before = ring;
    ring.await_full();
    multiply_buffer<true>(part, ring.buffer());
    ring.step();
    for (int i = 1; i < PROMOTE && at + i < depth.last; ++i, ring.step()) {
      ring.await_full();
      multiply_buffer(part, ring.buffer());
      wait_products<1>();
      before.release();
      before.step();
    }
    wait_products<0>();
    settle(part);
    before.release();
    add(sums, part);
  }
}

/// Multiplies one tile of the result; the ring then stands behind it. `pass`: another set's turn is
/// next.
DEVICE void multiply_tile(Buffers& ring, Sums& sums, const Work& work, bool pass) {
  const Depth depth = work.depth;
  clear(sums);
  if (PROMOTE > 0) {
    multiply_promoted(ring, sums, depth);
    if (pass) pass_turn();
    return;
  }
  Buffers before = ring;
  for (int at = depth.first; at < depth.last; ++at, ring.step()) {
    ring.await_full();
    clear_triangle(ring.buffer(), work.tile.row + group_row(), at * TILE_K);
    multiply_buffer(sums, ring.buffer());
    if (at > depth.first) {
      wait_products<1>();
      before.release();
      before.step();
    }
  }
  if (pass) pass_turn();
  wait_products<0>();
  settle(sums);
  if (depth.first < depth.last) before.release();
}
