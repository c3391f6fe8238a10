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

DEVICE void write(const Matrices& in, T* dx, const Lane& lane, const Kept& kept, float sum) {
#pragma unroll WRITE_UNROLL
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
struct SoftmaxBackward {
  typedef float Part;  // of sum(y * dy)
  static constexpr int WORDS = 1;
  const Matrices& in;
  T* dx;

  DEVICE SoftmaxBackward(const Matrices& in, T* dx) : in(in), dx(dx) {}
  DEVICE void prepare(const Team&) {}
  DEVICE float measure(const Lane& lane, const Kept& kept, long long, Team& team) {
    return block_reduce<Sum>(dot(in, lane, kept), team);
  }
  DEVICE void write(const Lane& lane, const Kept& kept, long long, float, float all, const Team&) { ::write(in, dx, lane, kept, all); }
#if CLUSTER > 1
  static DEVICE void pack(float mine, float (&values)[WORDS]) { values[0] = mine; }
  static DEVICE float merge(const float (*sent)[CLUSTER]) { return tree<Sum>(sent[0]); }
#endif
};

extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ y, const T* __restrict__ dy, T* __restrict__ dx, long long rows) {
  const Matrices in = {y, dy};
  SoftmaxBackward backward(in, dx);
  Pass<SoftmaxBackward>(in, rows, backward).run();
}
#else
extern "C" __global__ void __launch_bounds__(BLOCK) partial(const T* __restrict__ y, const T* __restrict__ dy, float* __restrict__ parts, long long rows) {
  const Matrices in = {y, dy};
  Team team;
  FOR_EACH_GROUP(row) {
    const float sum = block_reduce<Sum>(dot(in, Lane(row, team), Kept()), team);
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
    write(in, dx, Lane(row, team), Kept(), block_reduce<Sum>(sum, team));
  }
}
#endif
