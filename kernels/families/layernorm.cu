/// A row that is kept is passed over twice: the mean first, then the squares of the deviations.
DEVICE Norm measure(const Matrices& in, const Lane& lane, const Kept& kept, Team& team, float eps) {
  float sum = 0;
#pragma unroll PASS_UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector v = kept.get(in, lane, c);
#pragma unroll
    for (int e = 0; e < VEC; ++e) sum += v[e];
  }
  const float mean = block_reduce<Sum>(sum, team) / max(1, lane.count());
  float squares = 0;
#pragma unroll PASS_UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector v = kept.get(in, lane, c);
#pragma unroll
    for (int e = 0; e < VEC; ++e) squares += lane.has(c, e) ? (v[e] - mean) * (v[e] - mean) : 0.0f;
  }
  return norm_of(over_cluster({(float)lane.count(), mean, block_reduce<Sum>(squares, team)}, team), eps);
}

/// This thread's share of a row that has to be read again, in one pass.
DEVICE Moments scan(const Matrices& in, const Lane& lane) {
  Moments all;
#pragma unroll UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Moments m = moments_of(fetch(in[0], lane, c), lane, c);
    all.add(m.count, m.mean, m.squares);
  }
  return all;
}

DEVICE void write(const Matrices& in, const Parameters& affine, T* y, const Lane& lane, const Kept& kept, const Norm& norm) {
#pragma unroll PASS_UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector v = kept.get(in, lane, c);
    const Vector weight = affine.get(lane, c, 0);
    const Vector bias = affine.get(lane, c, 1);
    float out[VEC];
#pragma unroll
    for (int e = 0; e < VEC; ++e) out[e] = (v[e] - norm.mean) * norm.scale * weight[e] + bias[e];
    put(y, lane, c, out);
  }
}

// What the gradient will need, once per row.
#if SAVE_STATS
#define STATISTICS float *__restrict__ mean, float *__restrict__ rstd,
#define SAVE(row, norm)                 \
  if (team.t == 0 && PART_INDEX == 0) { \
    mean[row] = (norm).mean;            \
    rstd[row] = (norm).scale;           \
  }
#else
#define STATISTICS
#define SAVE(row, norm)
#endif

#if SPLIT == 1
extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                                                          T* __restrict__ y, STATISTICS float eps, long long rows) {
  const Matrices in = {x};
  Team team;
  Kept kept;
  enter();
  kept.begin(in, team, rows);
  const Parameters affine({weight, bias}, team);
  FOR_EACH_GROUP(group) {
    const Lane lane(row_of(group, team, rows), team);
    kept.read(in, lane, group, team, rows);
    const Norm norm = STORAGE == RELOAD ? norm_of(over_cluster(in_block(scan(in, lane), lane.count(), team), team), eps) : measure(in, lane, kept, team, eps);
    if (!active(group, team, rows)) continue;
    write(in, affine, y, lane, kept, norm);
    SAVE(group + team.r, norm)
  }
}
#else
extern "C" __global__ void __launch_bounds__(BLOCK) partial(const T* __restrict__ x, float2* __restrict__ parts, long long rows) {
  const Matrices in = {x};
  Team team;
  FOR_EACH_GROUP(row) {
    const Lane lane(row, team);
    const Moments m = in_block(scan(in, lane), lane.count(), team);
    if (team.t == 0) parts[row * SPLIT + PART_INDEX] = make_float2(m.mean, m.squares);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) finish(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                                                          T* __restrict__ y, STATISTICS const float2* __restrict__ parts, float eps, long long rows) {
  const Matrices in = {x};
  Team team;
  const Parameters affine({weight, bias}, team);
  FOR_EACH_GROUP(row) {
    Moments mine;
    for (int p = team.t; p < SPLIT; p += THREADS_PER_ROW) {
      const float2 part = parts[row * SPLIT + p];
      mine.add(count_of_part(row, p), part.x, part.y);
    }
    const Norm norm = norm_of(in_block(mine, COLS, team), eps);
    write(in, affine, y, Lane(row, team), Kept(), norm);
    SAVE(row, norm)
  }
}
#endif
