/// This thread's share of a row.
DEVICE Moments scan(const Matrices& in, const Lane& lane, const Kept& kept) {
  Moments all;
#pragma unroll PASS_UNROLL
  for (int first = 0; first < CHUNKS; first += SPAN) {
    if (!lane.has(first)) continue;
    Deviations seen(kept.get(in, lane, first), lane, first);
#pragma unroll PASS_UNROLL
    for (int c = first; c < min(first + SPAN, CHUNKS); ++c) {
      if (!lane.has(c)) continue;
      const Vector v = kept.get(in, lane, c);
      UNROLLED for (int e = 0; e < VEC; ++e) seen.add(v[e], lane.has(c, e));
    }
    const Moments m = seen.moments();
    all.add(m.count, m.mean, m.squares);
  }
  return all;
}

DEVICE void write(const Matrices& in, const Parameters& affine, T* y, const Lane& lane, const Kept& kept, const Norm& norm) {
#pragma unroll WRITE_UNROLL
  for (int c = 0; c < CHUNKS; ++c) {
    if (!lane.has(c)) continue;
    const Vector v = kept.get(in, lane, c);
    const Vector weight = affine.get(lane, c, 0);
    const Vector bias = affine.get(lane, c, 1);
    float out[VEC];
    UNROLLED for (int e = 0; e < VEC; ++e) out[e] = (v[e] - norm.mean) * norm.scale * weight[e] + bias[e];
    put(y, lane, c, out);
  }
}

struct LayerNorm {
  typedef Moments Part;
  static constexpr int WORDS = 3;
  const Matrices& in;
  Parameters affine;
  T* y;
  float eps;

  DEVICE LayerNorm(const Matrices& in, const T* weight, const T* bias, T* y, float eps)
      : in(in), affine{{weight, bias}}, y(y), eps(eps) {}
  DEVICE void prepare(const Team& team) { affine.keep(team); }
  DEVICE Moments measure(const Lane& lane, const Kept& kept, long long, Team& team) {
    return in_block(scan(in, lane, kept), lane.count(), team);
  }
  DEVICE void write(const Lane& lane, const Kept& kept, long long, const Moments&, const Moments& all, const Team&) {
    ::write(in, affine, y, lane, kept, norm_of(all, eps));
  }
  static DEVICE void pack(const Moments& mine, float (&values)[WORDS]) { pack_moments(mine, values); }
  static DEVICE Moments merge(const float (*sent)[CLUSTER]) { return merge_moments(sent); }
  static DEVICE Moments unpack(const float* words) { return {words[0], words[1], words[2]}; }
};

extern "C" __global__ void __launch_bounds__(BLOCK) kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                                                          T* __restrict__ y, float eps, long long rows SPLIT_PARAMETERS) {
  const Matrices in = {x};
  LayerNorm layernorm(in, weight, bias, y, eps);
  Pass<LayerNorm>(in, rows, layernorm).run(SPLIT_ARGUMENTS);
}
