/// This thread's share of sum(y * dy).
DEVICE float dot(const Matrices& in, const Lane& lane, const Kept& kept) {
  float sum = 0;
#pragma unroll PASS_UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector y = kept.get(in, lane, c, 0);
    const Vector dy = kept.get(in, lane, c, 1);
    float part = 0;
    UNROLLED for (int e = 0; e < VEC; ++e) part += y[e] * dy[e];
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
    UNROLLED for (int e = 0; e < VEC; ++e) out[e] = y[e] * (dy[e] - sum);
    put(dx, lane, c, out);
  }
}

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
  static DEVICE void pack(float mine, float (&values)[WORDS]) { values[0] = mine; }
  static DEVICE float merge(const float (*sent)[CLUSTER]) { return tree<Sum>(sent[0]); }
  static DEVICE float unpack(const float* words) { return words[0]; }
};

extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ y, const T* __restrict__ dy, T* __restrict__ dx, long long rows SPLIT_PARAMETERS) {
  const Matrices in = {y, dy};
  SoftmaxBackward backward(in, dx);
  Pass<SoftmaxBackward>(in, rows, backward).run(SPLIT_ARGUMENTS);
}
