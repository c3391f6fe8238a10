// dx needs two sums over each row; dweight and dbias are sums over each column. FUSED: one persistent pass gives dx and every
// block's share of the column sums. Otherwise `columns` takes the shares in a pass of its own. Either way `add_shares` adds
// them in a fixed order, so that the result does not depend on timing.
#if FUSED
#define STATISTICS
#define SHARES float *__restrict__ shares,
#else
#define STATISTICS float *__restrict__ mean, float *__restrict__ rstd,  // of the rows, for the pass over columns
#define SHARES
#endif

/// What some elements of a row contribute: moments of x; sums of g = dy * weight and of g * (x - mean).
struct Contribution {
  Moments x;
  float g = 0;
  float gx = 0;

  /// Refers gx to another mean.
  DEVICE float gx_about(float mean) const { return gx + (x.mean - mean) * g; }
  DEVICE void add(const Contribution& other) {
    Moments both = x;
    both.add(other.x.count, other.x.mean, other.x.squares);
    gx = gx_about(both.mean) + other.gx_about(both.mean);
    g += other.g;
    x = both;
  }
};
/// What dx needs of its row: norm, and the means of g and of g * (x - mean) * scale.
struct RowSums {
  Norm norm;
  float mean_g;
  float mean_gx;
};
DEVICE RowSums row_sums(const Contribution& all, float eps) {
  const Norm norm = norm_of(all.x, eps);
  return {norm, all.g * (1.0f / COLS), all.gx * norm.scale * (1.0f / COLS)};
}

/// This thread's share of a row.
DEVICE Contribution scan(const Matrices& in, const Parameters& affine, const Lane& lane, const Kept& kept) {
  Contribution all;
#pragma unroll WRITE_UNROLL
  for (int first = 0; first < CHUNKS; first += SPAN) {
    if (!lane.has(first)) continue;
    Deviations seen(kept.get(in, lane, first, 0), lane, first);
    float g_sum = 0, gx = 0;
#pragma unroll WRITE_UNROLL
    for (int c = first; c < min(first + SPAN, CHUNKS); ++c) {
      if (!lane.has(c)) continue;
      const Vector v = kept.get(in, lane, c, 0);
      const Vector u = kept.get(in, lane, c, 1);
      const Vector w = affine.get(lane, c);
      UNROLLED for (int e = 0; e < VEC; ++e) {
        const float g = u[e] * w[e];
        g_sum += g;
        gx += g * seen.add(v[e], lane.has(c, e));
      }
    }
    all.add({seen.moments(), g_sum, gx - seen.offset() * g_sum});
  }
  return all;
}

/// Sums over the threads of the block, or of a warp.
struct OverBlock {
  Team& team;
  template <int N>
  DEVICE void sum(float (&values)[N]) const { block_reduce<Sum>(values, team); }
};
struct OverWarp {
  template <int N>
  DEVICE void sum(float (&values)[N]) const { warp_reduce<Sum>(values); }
};
/// Contributions to some rows, of `count` elements each, from those of single threads.
template <int N, class Threads>
DEVICE void add_up(Contribution (&rows)[N], int count, const Threads& threads) {
  float means[N], sums[3 * N];
  UNROLLED for (int n = 0; n < N; ++n) means[n] = rows[n].x.count * rows[n].x.mean;
  threads.sum(means);
  UNROLLED for (int n = 0; n < N; ++n) {
    const float mean = means[n] / max(1, count), delta = rows[n].x.mean - mean;
    sums[3 * n] = rows[n].x.squares + rows[n].x.count * delta * delta;
    sums[3 * n + 1] = rows[n].g;
    sums[3 * n + 2] = rows[n].gx_about(mean);
    rows[n].x.mean = mean;
  }
  threads.sum(sums);
  UNROLLED for (int n = 0; n < N; ++n) rows[n] = {{(float)count, rows[n].x.mean, sums[3 * n]}, sums[3 * n + 1], sums[3 * n + 2]};
}
DEVICE void join(Contribution& all, const Contribution& more) { all.add(more); }
DEVICE Contribution in_block(const Contribution& mine, int count, Team& team) {
  Contribution all[1] = {mine};
  add_up(all, count, OverBlock{team});
  return all[0];
}

#if FUSED
/// Column sums of the rows seen so far, for the columns of this thread's vectors: those of the first SHARED_SUMS chunks in
/// shared memory, the others in registers.
struct ColumnSums {
  float held[CHUNKS > SHARED_SUMS ? (CHUNKS - SHARED_SUMS) * VEC * 2 : 1];
  float settled[OWNERS > 1 ? sizeof(held) / sizeof(float) : 1] = {};  // of rows long past: short chains err less
  float* shared;

  DEVICE ColumnSums() {
    shared = (float*)((Vector*)dynamic_shared + KEPT_VECTORS * BLOCK) + threadIdx.x;
    UNROLLED for (int i = 0; i < sizeof(held) / sizeof(float); ++i) held[i] = 0;
    for (int i = 0; i < SHARED_SUMS * VEC * 2; ++i) shared[i * BLOCK] = 0;
  }
  DEVICE void add(int c, int e, float dweight, float dbias) {
    const int i = (c * VEC + e) * 2;
    if (c < SHARED_SUMS) {
      shared[i * BLOCK] += dweight;
      shared[(i + 1) * BLOCK] += dbias;
    } else {
      held[i - SHARED_SUMS * VEC * 2] += dweight;
      held[i + 1 - SHARED_SUMS * VEC * 2] += dbias;
    }
  }
  DEVICE void settle() {
    UNROLLED for (int i = 0; i < sizeof(settled) / sizeof(float); ++i) settled[i] += held[i], held[i] = 0;
  }
  /// Adds what the rows of the block have: `use` gets the sums for dweight and dbias of vector c.
  template <class Use>
  DEVICE void add_up(const Team& team, const Use& use) const {
    const Lane lane(0, team);
    UNROLLED for (int c = 0; c < CHUNKS; ++c) {
      float sums[2][VEC];
      UNROLLED for (int i = 0; i < VEC * 2; ++i) sums[i % 2][i / 2] = add_rows(get(c, i / 2, i % 2), team);
      if (team.r == 0 && lane.has(c)) use(lane, c, sums);
    }
  }
  /// Writes those sums to share[dweight, dbias][COLS].
  DEVICE void store(float* share, const Team& team) const {
    add_up(team, [&](const Lane& lane, int c, const float (&sums)[2][VEC]) {
      UNROLLED for (int i = 0; i < VEC * 2; ++i) share[i % 2 * COLS + lane.at(c) + i / 2 - lane.first] = sums[i % 2][i / 2];
    });
  }

 private:
  DEVICE float get(int c, int e, int which) const {
    const int i = (c * VEC + e) * 2 + which;
    if (c < SHARED_SUMS) return shared[i * BLOCK];
    return held[i - SHARED_SUMS * VEC * 2] + (OWNERS > 1 ? settled[i - SHARED_SUMS * VEC * 2] : 0);
  }
  /// The sum over the block's rows, for the threads of its first one.
  static DEVICE float add_rows(float value, const Team& team) {
    if (ROWS_PER_BLOCK == 1) return value;
    __shared__ float part[ROWS_PER_BLOCK][THREADS_PER_ROW];
    __syncthreads();
    part[team.r][team.t] = value;
    __syncthreads();
    UNROLLED for (int r = 1; r < ROWS_PER_BLOCK; ++r) value += team.r == 0 ? part[r][team.t] : 0.0f;
    return value;
  }
};
#else
struct ColumnSums {
  DEVICE void add(int, int, float, float) {}
};
#endif

constexpr int COLUMN_UNROLL = FUSED ? 1024 : WRITE_UNROLL;  // column sums in registers are known by number

/// `vectors` gives vector c of x or of dy.
template <class Vectors>
DEVICE void write(const Vectors& vectors, const Parameters& affine, T* dx, const Lane& lane, const RowSums& row, ColumnSums& columns) {
#pragma unroll COLUMN_UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector v = vectors(c, 0);
    const Vector u = vectors(c, 1);
    const Vector w = affine.get(lane, c);
    float out[VEC];
    UNROLLED for (int e = 0; e < VEC; ++e) {
      const float normal = (v[e] - row.norm.mean) * row.norm.scale;
      out[e] = row.norm.scale * (u[e] * w[e] - row.mean_g - normal * row.mean_gx);  // differences first: they may be zero
      columns.add(c, e, u[e] * normal, u[e]);
    }
    put(dx, lane, c, out);
  }
}

#if OWNERS > 1
// Blocks that keep to their columns: the kernel follows.
#else
struct LayerNormBackward {
  typedef Contribution Part;
  static constexpr int WORDS = 5;
  const Matrices& in;
  Parameters affine;
  ColumnSums columns;
  T* dx;
  float *mean, *rstd;  // of the rows, where a pass over columns will need them
  float eps;

  DEVICE LayerNormBackward(const Matrices& in, const T* weight, T* dx, float* mean, float* rstd, float eps)
      : in(in), affine{{weight}}, dx(dx), mean(mean), rstd(rstd), eps(eps) {}
  DEVICE void prepare(const Team& team) { affine.keep(team); }
  DEVICE Contribution measure(const Lane& lane, const Kept& kept, long long, Team& team) {
    return in_block(scan(in, affine, lane, kept), lane.count(), team);
  }
  DEVICE void write(const Lane& lane, const Kept& kept, long long row, const Contribution&, const Contribution& all, const Team& team) {
    const RowSums sums = row_sums(all, eps);
    ::write([&](int c, int tensor) { return kept.get(in, lane, c, tensor); }, affine, dx, lane, sums, columns);
    if (!FUSED && team.t == 0 && PART_INDEX == 0) {
      mean[row] = sums.norm.mean;
      rstd[row] = sums.norm.scale;
    }
  }
  static DEVICE void pack(const Contribution& mine, float (&values)[WORDS]) {
    pack_moments(mine.x, values);
    values[3] = mine.g;
    values[4] = mine.gx;
  }
  static DEVICE Contribution merge(const float (*sent)[CLUSTER]) {
    Contribution all;
    all.x = merge_moments(sent);
    UNROLLED for (int rank = 0; rank < CLUSTER; ++rank) {
      all.g += sent[3][rank];
      all.gx += sent[4][rank] + (sent[1][rank] - all.x.mean) * sent[3][rank];
    }
    return all;
  }
  static DEVICE Contribution unpack(const float* words) { return {{words[0], words[1], words[2]}, words[3], words[4]}; }
};
extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ x, const T* __restrict__ dy, const T* __restrict__ weight,
                                                          STATISTICS T* __restrict__ dx, SHARES float eps, long long rows SPLIT_PARAMETERS) {
  const Matrices in = {x, dy};
#if FUSED
  float *mean = nullptr, *rstd = nullptr;
#endif
  LayerNormBackward backward(in, weight, dx, mean, rstd, eps);
  Pass<LayerNormBackward>(in, rows, backward).run(SPLIT_ARGUMENTS);
#if FUSED
  backward.columns.store(shares + FIRST_GROUP / ROWS_PER_BLOCK * 2 * COLS, Team());
#endif
}
#endif

#if !FUSED
/// Shares of the column sums: each warp takes every eighth row of its block's, each thread WIDTH columns.
extern "C" __global__ void __launch_bounds__(256) columns(const T* __restrict__ x, const T* __restrict__ dy, const float* __restrict__ mean,
                                                         const float* __restrict__ rstd, float* __restrict__ shares, long long rows) {
  constexpr int WIDTH = PEELED ? 1 : VEC;
  constexpr int WARPS = 8;
  __shared__ float part[2][WARPS][32 * WIDTH];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int column = (blockIdx.x * 32 + lane) * WIDTH;
  float dweight[WIDTH] = {}, dbias[WIDTH] = {};
  if (column < COLS) {
#pragma unroll 4
    for (long long row = blockIdx.y * WARPS + warp; row < rows; row += gridDim.y * WARPS) {
      const long long at = row * COLS + column;
      Vector v, u;
      if (WIDTH == VEC) {
        v = load(x + at);
        u = load(dy + at);
      } else {
        v.element[0] = x[at];
        u.element[0] = dy[at];
      }
      const Norm norm = {mean[row], rstd[row]};
      UNROLLED for (int e = 0; e < WIDTH; ++e) {
        dweight[e] += u[e] * ((v[e] - norm.mean) * norm.scale);
        dbias[e] += u[e];
      }
    }
  }
  UNROLLED for (int e = 0; e < WIDTH; ++e) {
    part[0][warp][e * 32 + lane] = dweight[e];
    part[1][warp][e * 32 + lane] = dbias[e];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * 32 * WIDTH; i += 256) {
    const int which = i / (32 * WIDTH), place = i % (32 * WIDTH);
    float sum = 0;
    UNROLLED for (int w = 0; w < WARPS; ++w) sum += part[which][w][place];
    const int to = (blockIdx.x * 32 + place % 32) * WIDTH + place / 32;
    if (to < COLS) shares[((long long)blockIdx.y * 2 + which) * COLS + to] = sum;
  }
}
#endif

/// Adds `count` shares: 32 columns per block, ADD_GROUPS shares at a time.
extern "C" __global__ void __launch_bounds__(32 * ADD_GROUPS) add_shares(const float* __restrict__ shares, T* __restrict__ dweight,
                                                                        T* __restrict__ dbias, int count) {
  __shared__ float part[2][ADD_GROUPS][32];
  const int lane = threadIdx.x % 32, group = threadIdx.x / 32;
  const int column = blockIdx.x * 32 + lane;
  float w = 0, b = 0;
  if (column < COLS) {
#pragma unroll 8
    for (int i = group; i < count; i += ADD_GROUPS) {
      const float* share = shares + (long long)i * 2 * COLS + column;
      w += share[0];
      b += share[COLS];
    }
  }
  part[0][group][lane] = w;
  part[1][group][lane] = b;
  __syncthreads();
  if (group != 0 || column >= COLS) return;
  UNROLLED for (int g = 1; g < ADD_GROUPS; ++g) {
    w += part[0][g][lane];
    b += part[1][g][lane];
  }
  from_float(dweight[column], w);
  from_float(dbias[column], b);
}
