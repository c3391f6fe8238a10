// Operators that move elements, cells and resolutions, against places written out by hand.
#include <algorithm>
#include <functional>

#include "atunner/graph/library/library_support_test.h"

namespace atunner::graph {
namespace {

TEST(Moves, GoWhereTheyShould) {
  struct Move {
    const char* name;
    Shapes shapes;
    Attributes attributes;
    size_t count;
    std::function<size_t(size_t)> from;  ///< place in the operand of the result's element
  };
  const Move moves[] = {
      {"permute",
       {{2, 3, 4}},
       {{"order", std::string("cab")}},
       24,
       [](size_t i) { return i % 6 * 4 + i / 6; }},
      {"slice",
       {{2, 6}},
       {{"start", I(1)}, {"stop", I(6)}, {"step", I(2)}},
       6,
       [](size_t i) { return i / 3 * 6 + 1 + i % 3 * 2; }},
      {"roll",
       {{2, 5}},
       {{"shift", I(-2)}},
       10,
       [](size_t i) { return i / 5 * 5 + (i % 5 + 2) % 5; }},
      {"tile", {{2, 3}}, {{"times", I(2)}}, 12, [](size_t i) { return i / 6 * 3 + i % 3; }},
      {"pixel_shuffle",
       {{1, 4, 2, 3}},
       {},
       24,
       [](size_t i) { return (i / 6 % 2 * 2 + i % 2) * 6 + i / 12 * 3 + i % 6 / 2; }},
      {"pixel_unshuffle",
       {{1, 1, 2, 4}},
       {},
       8,
       [](size_t i) { return i / 4 * 4 + i % 2 * 2 + i / 2 % 2; }},
      {"unfold",
       {{1, 1, 3, 3}},
       {{"size", I(2)}},
       16,
       [](size_t i) { return (i / 8 + i % 4 / 2) * 3 + i / 4 % 2 + i % 2; }},
  };
  for (const Move& move : moves) {
    SCOPED_TRACE(move.name);
    const Case c = Of(move.name, move.shapes, move.attributes);
    std::vector<double> want;
    for (size_t i = 0; i < move.count; ++i) want.push_back(c.in(0, move.from(i)));
    ExpectNear(c.outputs[0], want, 0);
  }
}

TEST(Moves, SplitAndStackAndOneHotAndMasks) {
  const Case split = Of("split", {{2, 6}}, {{"parts", I(3)}});
  ASSERT_EQ(split.outputs.size(), 3u);
  ExpectNear(split.outputs[1], {split.in(0, 2), split.in(0, 3), split.in(0, 8), split.in(0, 9)}, 0);
  const Case stack = Of("stack", {{2}}, {{"axis", I(1)}});
  ExpectNear(stack.outputs[0], {stack.in(0, 0), stack.in(1, 0), stack.in(0, 1), stack.in(1, 1)}, 0);
  const Case hot = Of("one_hot", {{4}}, {{"classes", I(3)}});
  std::vector<double> want;
  for (size_t i = 0; i < 12; ++i) want.push_back(hot.in(0, i / 3) == static_cast<double>(i % 3));
  ExpectNear(hot.outputs[0], want, 0);
  const Case masked = Of("masked_fill", {{8}}, {{"value", -1.5}});
  std::vector<double> filled;
  for (size_t i = 0; i < 8; ++i) filled.push_back(masked.in(1, i) != 0 ? -1.5 : masked.in(0, i));
  ExpectNear(masked.outputs[0], filled, 0);
}

TEST(Moves, ScattersTakeTheirPlacesInOrder) {
  const Case set = Of("scatter", {{5, 2}, {4}});
  const Case top = Of("scatter_max", {{5, 2}, {4}});
  std::vector<double> want_set = set.inputs[0].Reals();
  std::vector<double> want_top = top.inputs[0].Reals();
  for (size_t n = 0; n < 4; ++n)
    for (size_t d = 0; d < 2; ++d) {
      want_set[static_cast<size_t>(set.in(1, n)) * 2 + d] = set.in(2, n * 2 + d);
      double& larger = want_top[static_cast<size_t>(top.in(1, n)) * 2 + d];
      larger = std::max(larger, top.in(2, n * 2 + d));
    }
  ExpectNear(set.outputs[0], want_set, 0);
  ExpectNear(top.outputs[0], want_top, 0);
  const Case bag = Of("embedding_bag", {{5, 2}, {3, 4}}, {{"mean", true}});
  std::vector<double> bags(6, 0);
  for (size_t i = 0; i < 12; ++i)
    for (size_t d = 0; d < 2; ++d)
      bags[i / 4 * 2 + d] += bag.in(1, static_cast<size_t>(bag.in(0, i)) * 2 + d) / 4;
  ExpectNear(bag.outputs[0], bags);
}

TEST(Interpolate, IsLinearBetweenNeighbours) {
  for (const bool corners : {false, true}) {
    SCOPED_TRACE(corners);
    const Case c = Of("interpolate", {{1, 1, 3, 4}}, {{"factor", 1.7}, {"align_corners", corners}});
    ASSERT_EQ(c.outputs[0].shape, (std::vector<int64_t>{1, 1, 5, 6}));
    const auto place = [&](int64_t i, int64_t n, int64_t m) {
      const double exact = corners ? static_cast<double>(i) * static_cast<double>(n - 1) /
                                         static_cast<double>(m - 1)
                                   : (static_cast<double>(i) + 0.5) / 1.7 - 0.5;
      return std::clamp(exact, 0.0, static_cast<double>(n - 1));
    };
    std::vector<double> want;
    for (int64_t p = 0; p < 5; ++p)
      for (int64_t q = 0; q < 6; ++q) {
        const double h = place(p, 3, 5);
        const double w = place(q, 4, 6);
        const auto top = static_cast<size_t>(h);
        const auto left = static_cast<size_t>(w);
        const auto at = [&](size_t r, size_t s) {
          return c.in(0, std::min<size_t>(r, 2) * 4 + std::min<size_t>(s, 3));
        };
        const double v = h - std::floor(h);
        const double u = w - std::floor(w);
        want.push_back((1 - v) * ((1 - u) * at(top, left) + u * at(top, left + 1)) +
                       v * ((1 - u) * at(top + 1, left) + u * at(top + 1, left + 1)));
      }
    ExpectNear(c.outputs[0], want);
  }
}

TEST(Pooling, AdaptiveCellsOverlapWhereTheyMust) {
  const Case mean = Of("adaptive_avg_pool", {{1, 2, 7, 5}}, {{"output", I(3)}});
  const Case top = Of("adaptive_max_pool", {{1, 2, 7, 5}}, {{"output", I(3)}});
  std::vector<double> want_mean;
  std::vector<double> want_top;
  for (size_t channel = 0; channel < 2; ++channel)
    for (size_t p = 0; p < 3; ++p)
      for (size_t q = 0; q < 3; ++q) {
        double sum = 0;
        double count = 0;
        double largest = -INFINITY;
        for (size_t h = p * 7 / 3; h < (p * 7 + 7 + 2) / 3; ++h)
          for (size_t w = q * 5 / 3; w < (q * 5 + 5 + 2) / 3; ++w) {
            sum += mean.in(0, (channel * 7 + h) * 5 + w);
            largest = std::max(largest, top.in(0, (channel * 7 + h) * 5 + w));
            ++count;
          }
        want_mean.push_back(sum / count);
        want_top.push_back(largest);
      }
  ExpectNear(mean.outputs[0], want_mean);
  ExpectNear(top.outputs[0], want_top, 0);
}

TEST(Convolution, SeparableIsTwoConvolutions) {
  const Case c = Of("separable_conv", {{1, 2, 4}, {2, 1, 3}},
                    {{"padding", I(1)}, {"channels", I(3)}});
  std::vector<double> want;
  for (size_t k = 0; k < 3; ++k)
    for (size_t p = 0; p < 4; ++p) {
      double sum = 0;
      for (size_t channel = 0; channel < 2; ++channel)
        for (size_t r = 0; r < 3; ++r) {
          const auto at = static_cast<int64_t>(p + r) - 1;
          if (at < 0 || at >= 4) continue;
          sum += c.in(2, k * 2 + channel) * c.in(1, channel * 3 + r) *
                 c.in(0, channel * 4 + static_cast<size_t>(at));
        }
      want.push_back(sum);
    }
  ExpectNear(c.outputs[0], want);
}

TEST(Moves, RefuseWhatPyTorchRefuses) {
  const auto fails = [](const char* name, std::vector<std::vector<int64_t>> shapes,
                        Attributes attributes) {
    return !Build(*FindInLibrary(name),
                  {DType::kFloat32, std::move(shapes), std::move(attributes)});
  };
  EXPECT_TRUE(fails("topk", {{3, 5}}, {{"k", int64_t{0}}})) << "which would be all";
  EXPECT_TRUE(fails("stack", {{3, 5}}, {{"axis", int64_t{3}}}));
  EXPECT_FALSE(fails("stack", {{3, 5}}, {{"axis", int64_t{-3}}}));
  for (const int64_t added : {-1, 2}) {
    const Attributes attributes = {{"stride", int64_t{2}}, {"output_padding", added}};
    EXPECT_TRUE(fails("conv_transpose", {{1, 2, 5}, {2, 3, 3}}, attributes)) << added;
  }
}

}  // namespace
}  // namespace atunner::graph
