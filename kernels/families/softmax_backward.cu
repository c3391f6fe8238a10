/// This thread's share of sum(y * dy).
DEVICE float dot(const Matrices& in, const Lane& lane, const Kept& kept) {
  float sum = 0;
#pragma unroll PASS_UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector y = kept.get(in, lane, c, 0);
    const Vector dy = kept.get(in, lane, c, 1);
    float part = 0;
#pragma unroll
    for (int e = 0; e < VEC; ++e) part += y[e] * dy[e];
    sum += part;
  }
  return sum;
}

/// The row's sum from its threads'.
DEVICE float combine(float mine, Team& team) {
  const float sum = block_reduce<Sum>(mine, team);
#if CLUSTER > 1
  const float values[1] = {sum};
  const auto sent = exchange(values, team);
  return tree<Sum>(sent[0]);
#else
  return sum;
#endif
}

DEVICE void write(const Matrices& in, T* dx, const Lane& lane, const Kept& kept, float sum) {
#pragma unroll PASS_UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector y = kept.get(in, lane, c, 0);
    const Vector dy = kept.get(in, lane, c, 1);
    float out[VEC];
#pragma unroll
    for (int e = 0; e < VEC; ++e) out[e] = y[e] * (dy[e] - sum);
    put(dx, lane, c, out);
  }
}

#if SPLIT == 1
extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ y, const T* __restrict__ dy, T* __restrict__ dx, long long rows) {
  const Matrices in = {y, dy};
  Team team;
  Kept kept;
  enter();
  kept.begin(in, team, rows);
  FOR_EACH_GROUP(group) {
    const Lane lane(row_of(group, team, rows), team);
    kept.read(in, lane, group, team, rows);
    const float sum = combine(dot(in, lane, kept), team);
    if (active(group, team, rows)) write(in, dx, lane, kept, sum);
  }
}
#else
extern "C" __global__ void __launch_bounds__(BLOCK) partial(const T* __restrict__ y, const T* __restrict__ dy, float* __restrict__ parts, long long rows) {
  const Matrices in = {y, dy};
  Team team;
  FOR_EACH_GROUP(row) {
    const float sum = combine(dot(in, Lane(row, team), Kept()), team);
    if (team.t == 0) parts[row * SPLIT + PART_INDEX] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) finish(const T* __restrict__ y, const T* __restrict__ dy, T* __restrict__ dx,
                                                          const float* __restrict__ parts, long long rows) {
  const Matrices in = {y, dy};
  Team team;
  FOR_EACH_GROUP(row) {
    float sum = 0;
    for (int p = team.t; p < SPLIT; p += THREADS_PER_ROW) sum += parts[row * SPLIT + p];
    write(in, dx, Lane(row, team), Kept(), combine(sum, team));
  }
}
#endif
