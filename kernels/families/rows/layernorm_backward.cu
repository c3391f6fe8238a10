// dx needs two sums over each row; dweight and dbias are sums over each column. FUSED: one
// persistent pass computes dx and every block's partial column sums. Otherwise the kernel `columns`
// computes the partial sums in a pass of its own. Either way `add_partial_sums` adds them in a
// fixed order, so that the result does not depend on timing.

/// The contribution of some elements of a row: moments of x; the sums of g = dy * weight and of g *
/// (x - mean).
struct Contribution {
  Moments x;
  float g = 0;
  float gx = 0;

  /// The sum of g * (x - mean) for another mean.
  DEVICE float gx_about(float mean) const { return gx + (x.mean - mean) * g; }
  template <class Parts>
  static DEVICE Contribution of(const Parts& parts, int count) {
    const float mean = parts.template combine<Sum>([](const Contribution& p) {
      return p.x.count * p.x.mean;
    }) / max(1, count);
    float sums[3];
    parts.template combine<Sum>(sums, [&](const Contribution& p, float(&sums)[3]) {
      sums[0] = p.x.squares_about(mean);
      sums[1] = p.g;
      sums[2] = p.gx_about(mean);
    });
    return {{(float)count, mean, sums[0]}, sums[1], sums[2]};
  }
};
/// The values of a row that dx needs: mean and 1 / standard deviation, and the means of g and of g
/// * (x - mean) * scale.
struct RowSums {
  Norm norm;
  float mean_g;
  float mean_gx;
};
DEVICE RowSums row_sums(const Contribution& all, float eps) {
  const Norm norm = norm_of(all.x, eps);
  return {norm, all.g * (1.0f / COLS), all.gx * norm.scale * (1.0f / COLS)};
}

#if FUSED
/// Column sums of the rows seen so far, for the columns of this thread's vectors.
struct ColumnSums {
  float held[CHUNKS * VEC * 2] = {};

  DEVICE void add(int c, int e, float dweight, float dbias) {
    held[(c * VEC + e) * 2] += dweight;
    held[(c * VEC + e) * 2 + 1] += dbias;
  }
  /// Adds the sums over the block's rows and writes them to share[dweight, dbias][COLS].
  DEVICE void store(float* share) const {
    const Team team;
    const Lane lane(0, team);
    UNROLLED for (int c = 0; c < CHUNKS; ++c) {
      UNROLLED for (int i = 0; i < VEC * 2; ++i) {
        const float sum = add_rows(held[c * VEC * 2 + i], team);
        if (team.r == 0 && lane.has(c)) share[i % 2 * COLS + lane.at(c) + i / 2 - lane.first] = sum;
      }
    }
  }

 private:
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
  DEVICE void store(float*) const {}
};
#endif

// Arrays of column sums in registers need constant indices.
constexpr int COLUMN_UNROLL = FUSED ? 1024 : WRITE_UNROLL;

/// `vectors` gives vector c of x or of dy.
template <class Vectors>
DEVICE void write(const Vectors& vectors, const Parameters& affine, T* dx, const Lane& lane,
                  const RowSums& row, ColumnSums& columns) {
  lane.each<COLUMN_UNROLL>([&](int c) {
    const Elements v = vectors(c, 0);
    const Elements u = vectors(c, 1);
    const Elements w = affine.get(lane, c);
    float out[VEC];
    UNROLLED for (int e = 0; e < VEC; ++e) {
      const float normal = (v[e] - row.norm.mean) * row.norm.scale;
      // Subtract first: the differences may be zero.
      out[e] = row.norm.scale * (u[e] * w[e] - row.mean_g - normal * row.mean_gx);
      columns.add(c, e, u[e] * normal, u[e]);
    }
    put(dx, lane, c, out);
  });
}

struct LayerNormBackward {
  typedef Contribution Part;
  Parameters affine;
  T* dx;
  float *mean, *rstd;  // of the rows, for a later pass over columns
  float eps;
  ColumnSums columns = {};

  DEVICE Contribution measure(const Lane& lane, const Kept& kept, Team& team) {
    Contribution mine[1];
    lane.each<WRITE_UNROLL, SPAN>([&](int first) {
      Deviations seen(kept.get(lane, first, 0), lane, first);
      float g_sum = 0, gx = 0;
      lane.each<WRITE_UNROLL>(
          [&](int c) {
            const Elements v = kept.get(lane, c, 0);
            const Elements u = kept.get(lane, c, 1);
            const Elements w = affine.get(lane, c);
            UNROLLED for (int e = 0; e < VEC; ++e) {
              const float g = u[e] * w[e];
              g_sum += g;
              gx += g * seen.add(v[e], lane.has(c, e));
            }
          },
          first, min(first + SPAN, CHUNKS));
      const Contribution link = {seen.moments(), g_sum, gx - seen.offset() * g_sum};
      mine[0] = first == 0 ? link : joined(mine[0], link, mine[0].x.count + link.x.count);
    });
    return whole(mine, lane.count(), OverBlock{team.slot});
  }
  DEVICE void write(const Lane& lane, const Kept& kept, const Contribution& all) {
    const RowSums sums = row_sums(all, eps);
    ::write([&](int c, int tensor) { return kept.get(lane, c, tensor); }, affine, dx, lane, sums,
            columns);
    if (!FUSED && lane.t == 0 && PART_INDEX == 0) {
      mean[lane.row] = sums.norm.mean;
      rstd[lane.row] = sums.norm.scale;
    }
  }
};
extern "C" __global__ void __launch_bounds__(BLOCK)
    kernel(const T* __restrict__ x, const T* __restrict__ dy, const T* __restrict__ weight,
           float* __restrict__ mean, float* __restrict__ rstd, T* __restrict__ dx,
           float* __restrict__ partial_sums, float eps, long long rows SPLIT_PARAMETERS) {
  const Matrices in = {x, dy};
  Pass<LayerNormBackward> pass(in, rows);
  LayerNormBackward backward{Parameters({weight}), dx, mean, rstd, eps};
  pass.run(backward SPLIT_ARGUMENTS);
  backward.columns.store(partial_sums + FIRST_GROUP / ROWS_PER_BLOCK * 2 * COLS);
}

/// Sums two numbers for each of WIDTH neighbouring columns over every `blocks`-th group of rows,
/// one group per warp: add(i) adds the numbers of row i; use() gets the totals.
template <int WIDTH, class Index, class Add, class Use>
DEVICE void sum_columns(Index count, int blocks, const Add& add, const Use& use) {
  __shared__ float part[2][ADD_GROUPS][32 * WIDTH];
  const int lane = threadIdx.x % 32, group = threadIdx.x / 32;
  const int column = (blockIdx.x * 32 + lane) * WIDTH;
  float sums[2][WIDTH] = {};
  const Index first = (blocks > 1 ? blockIdx.y * ADD_GROUPS : 0) + group,
              step = blocks * ADD_GROUPS;
  // With a trip count known before the loop, the compiler unrolls it.
  const Index turns = column < COLS ? (count - first + step - 1) / step : 0;
#pragma unroll(WIDTH == 1 ? 8 : 4)
  for (Index turn = 0; turn < turns; ++turn) add(first + turn * step, column, sums);
  UNROLLED for (int i = 0; i < 2 * WIDTH; ++i)
      part[i % 2][group][i / 2 * 32 + lane] = sums[i % 2][i / 2];
  __syncthreads();
  for (int i = threadIdx.x; i < 32 * WIDTH; i += 32 * ADD_GROUPS) {
    float all[2] = {};
    UNROLLED for (int j = 0; j < 2 * ADD_GROUPS; ++j) all[j % 2] += part[j % 2][j / 2][i];
    const int to = (blockIdx.x * 32 + i % 32) * WIDTH + i / 32;
    if (to < COLS) use(to, all[0], all[1]);
  }
}

#if !FUSED
/// Partial column sums, for `add_partial_sums`.
extern "C" __global__ void __launch_bounds__(32 * ADD_GROUPS)
    columns(const T* __restrict__ x, const T* __restrict__ dy, const float* __restrict__ mean,
            const float* __restrict__ rstd, float* __restrict__ partial_sums, long long rows) {
  constexpr int WIDTH = PEELED ? 1 : VEC;
  const auto add = [&](long long row, int column, float(&sums)[2][WIDTH]) {
    const long long at = row * COLS + column;
    Elements v, u;
    if (WIDTH == VEC)
      read(v, x + at), read(u, dy + at);
    else
      v.element[0] = x[at], u.element[0] = dy[at];
    const Norm norm = {mean[row], rstd[row]};
    UNROLLED for (int e = 0; e < WIDTH; ++e) {
      sums[0][e] += u[e] * ((v[e] - norm.mean) * norm.scale);
      sums[1][e] += u[e];
    }
  };
  sum_columns<WIDTH>(rows, gridDim.y, add, [&](int column, float w, float b) {
    float* const share = partial_sums + blockIdx.y * 2ll * COLS + column;
    share[0] = w;
    share[COLS] = b;
  });
}
#endif

/// Adds `count` partial sums.
extern "C" __global__ void __launch_bounds__(32 * ADD_GROUPS)
    add_partial_sums(const float* __restrict__ partial_sums, T* __restrict__ dweight,
                     T* __restrict__ dbias, int count) {
  const auto add = [&](int i, int column, float(&sums)[2][1]) {
    const float* const share = partial_sums + i * 2ll * COLS + column;
    sums[0][0] += share[0];
    sums[1][0] += share[COLS];
  };
  sum_columns<1>(count, 1, add, [&](int column, float w, float b) {
    store(dweight[column], w);
    store(dbias[column], b);
  });
}
