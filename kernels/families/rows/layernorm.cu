struct LayerNorm {
  typedef Moments Part;
  Parameters affine;
  T* y;
  float eps;

  DEVICE Moments measure(const Lane& lane, const Kept& kept, Team& team) {
    Moments mine[1];
    lane.each<PASS_UNROLL, SPAN>([&](int first) {
      Deviations seen(kept.get(lane, first), lane, first);
      lane.each<PASS_UNROLL>(
          [&](int c) {
            const Elements v = kept.get(lane, c);
            UNROLLED for (int e = 0; e < VEC; ++e) seen.add(v[e], lane.has(c, e));
          },
          first, min(first + SPAN, CHUNKS));
      const Moments link = seen.moments();
      mine[0] = first == 0 ? link : joined(mine[0], link, mine[0].count + link.count);
    });
    return whole(mine, lane.count(), OverBlock{team.slot});
  }
  DEVICE void write(const Lane& lane, const Kept& kept, const Moments& all) {
    const Norm norm = norm_of(all, eps);
    lane.each<WRITE_UNROLL>([&](int c) {
      const Elements v = kept.get(lane, c);
      const Elements weight = affine.get(lane, c, 0);
      const Elements bias = affine.get(lane, c, 1);
      float out[VEC];
      UNROLLED for (int e = 0; e < VEC; ++e)
          out[e] = (v[e] - norm.mean) * norm.scale * weight[e] + bias[e];
      put(y, lane, c, out);
    });
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
           T* __restrict__ y, float eps, long long rows SPLIT_PARAMETERS) {
  const Matrices in = {x};
  Pass<LayerNorm> pass(in, rows);
  LayerNorm layernorm{Parameters({weight, bias}), y, eps};
  pass.run(layernorm SPLIT_ARGUMENTS);
}
