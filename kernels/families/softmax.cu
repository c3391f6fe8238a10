constexpr float LOG2E = 1.4426950408889634f;

/// 2^v; results below the normal numbers become zero.
DEVICE float power_of_two(float v) {
  float p;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(p) : "f"(v));
  return p;
}

/// The largest of some elements of a row, and the sum of exp(element - largest).
struct Peak {
  float top = MINUS_INFINITY;
  float total = 0;
};
/// exp(v - top). Where there was nothing but minus infinity, that counts as zero.
DEVICE float weight(float v, float top) { return power_of_two((v - (top == MINUS_INFINITY ? 0.0f : top)) * LOG2E); }

/// The row is kept as it was read; its exponentials are cheaper to take twice than to keep.
DEVICE Peak measure(const Matrices& in, const Lane& lane, const Kept& kept, Team& team) {
  Peak peak;
#pragma unroll PASS_UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector v = kept.get(in, lane, c);
#pragma unroll
    for (int e = 0; e < VEC; ++e) peak.top = Max::of(peak.top, v[e]);
  }
  peak.top = row_reduce<Max>(peak.top, team);
#pragma unroll PASS_UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector v = kept.get(in, lane, c);
#pragma unroll
    for (int e = 0; e < VEC; ++e) peak.total += weight(v[e], peak.top);
  }
  peak.total = row_reduce<Sum>(peak.total, team);
  return peak;
}

/// This thread's share of a row that has to be read again, in one pass: when a larger element comes, the sum so far shrinks.
DEVICE Peak scan(const Matrices& in, const Lane& lane) {
  Peak peak;
#pragma unroll UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector v = fetch(in[0], lane, c);
    float top = peak.top;
#pragma unroll
    for (int e = 0; e < VEC; ++e) top = Max::of(top, v[e]);
    float sum = 0;
#pragma unroll
    for (int e = 0; e < VEC; ++e) sum += weight(v[e], top);
    peak.total = peak.total * weight(peak.top, top) + sum;
    peak.top = top;
  }
  return peak;
}

/// The row's peak (or that of the block's part) from its threads'.
DEVICE Peak combine(const Peak& mine, Team& team) {
  const float top = row_reduce<Max>(mine.top, team);
  return {top, row_reduce<Sum>(mine.total * weight(mine.top, top), team)};
}

DEVICE void write(const Matrices& in, T* y, const Lane& lane, const Kept& kept, const Peak& peak) {
  const float scale = 1.0f / peak.total;
#pragma unroll PASS_UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector v = kept.get(in, lane, c);
    float out[VEC];
#pragma unroll
    for (int e = 0; e < VEC; ++e) out[e] = weight(v[e], peak.top) * scale;
    put(y, lane, c, out);
  }
}

#if SPLIT == 1
extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ x, T* __restrict__ y, long long rows) {
  const Matrices in = {x};
  Team team;
  Kept kept;
  enter();
  kept.begin(in, team, rows);
  FOR_EACH_GROUP(group) {
    const Lane lane(row_of(group, team, rows), team);
    kept.read(in, lane, group, team, rows);
    const Peak peak = STORAGE == RELOAD ? combine(scan(in, lane), team) : measure(in, lane, kept, team);
    if (active(group, team, rows)) write(in, y, lane, kept, peak);
  }
}
#else
extern "C" __global__ void __launch_bounds__(BLOCK) partial(const T* __restrict__ x, float2* __restrict__ parts, long long rows) {
  const Matrices in = {x};
  Team team;
  FOR_EACH_GROUP(row) {
    const Peak peak = combine(scan(in, Lane(row, team)), team);
    if (team.t == 0) parts[row * SPLIT + PART_INDEX] = make_float2(peak.top, peak.total);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) finish(const T* __restrict__ x, T* __restrict__ y, const float2* __restrict__ parts, long long rows) {
  const Matrices in = {x};
  Team team;
  FOR_EACH_GROUP(row) {
    Peak mine;
    for (int p = team.t; p < SPLIT; p += THREADS_PER_ROW) {
      const float2 part = parts[row * SPLIT + p];
      const float top = Max::of(mine.top, part.x);
      mine.total = mine.total * weight(mine.top, top) + part.y * weight(part.x, top);
      mine.top = top;
    }
    write(in, y, Lane(row, team), Kept(), combine(mine, team));
  }
}
#endif
