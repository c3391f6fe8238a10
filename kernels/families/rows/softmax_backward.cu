struct SoftmaxBackward {
  struct Part {
    float dot = 0;  // sum(y * dy)

    template <class Parts>
    static DEVICE Part of(const Parts& parts, int) {
      return {parts.template combine<Sum>([](const Part& p) { return p.dot; })};
    }
  };
  T* dx;

  DEVICE Part measure(const Lane& lane, const Kept& kept, Team& team) {
    Part mine[1];
    lane.each<PASS_UNROLL, SPAN>([&](int first) {
      float dots = 0;
      lane.each<PASS_UNROLL>(
          [&](int c) {
            const Elements y = kept.get(lane, c, 0);
            const Elements dy = kept.get(lane, c, 1);
            float dot = 0;
            UNROLLED for (int e = 0; e < VEC; ++e) dot += y[e] * dy[e];
            dots += dot;
          },
          first, min(first + SPAN, CHUNKS));
      mine[0].dot = first == 0 ? dots : mine[0].dot + dots;
    });
    return whole(mine, COLS, OverBlock{team.slot});
  }
  DEVICE void write(const Lane& lane, const Kept& kept, const Part& all) {
    lane.each<WRITE_UNROLL>([&](int c) {
      const Elements y = kept.get(lane, c, 0);
      const Elements dy = kept.get(lane, c, 1);
      float out[VEC];
      UNROLLED for (int e = 0; e < VEC; ++e) out[e] = y[e] * (dy[e] - all.dot);
      put(dx, lane, c, out);
    });
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    kernel(const T* __restrict__ y, const T* __restrict__ dy, T* __restrict__ dx,
           long long rows SPLIT_PARAMETERS) {
  const Matrices in = {y, dy};
  Pass<SoftmaxBackward> pass(in, rows);
  SoftmaxBackward backward{dx};
  pass.run(backward SPLIT_ARGUMENTS);
}
