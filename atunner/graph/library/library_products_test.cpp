// Products, quantised ones and attention against loops written out by hand.
#include <gmock/gmock.h>

#include <algorithm>

#include "atunner/graph/library/library_support_test.h"

namespace atunner::graph {
namespace {

TEST(Products, BroadcastTheAxesBeforeTheMatrices) {
  const Case c = Of("batched_matmul", {{2, 1, 3, 4}, {5, 4, 2}});
  ASSERT_EQ(c.outputs[0].shape, (std::vector<int64_t>{2, 5, 3, 2}));
  std::vector<double> want;
  for (size_t a = 0; a < 2; ++a)
    for (size_t b = 0; b < 5; ++b)
      for (size_t m = 0; m < 3; ++m)
        for (size_t n = 0; n < 2; ++n) {
          double sum = 0;
          for (size_t k = 0; k < 4; ++k)
            sum += c.in(0, (a * 3 + m) * 4 + k) * c.in(1, (b * 4 + k) * 2 + n);
          want.push_back(sum);
        }
  ExpectNear(c.outputs[0], want);
}

TEST(Products, WithABiasOfVectorsAndTheirSum) {
  const Case c = Of("addmm", {{2, 3}, {3, 4}}, {{"alpha", 0.5}, {"beta", -2.0}});
  std::vector<double> want;
  for (size_t m = 0; m < 2; ++m)
    for (size_t n = 0; n < 4; ++n) {
      double sum = -2 * c.in(2, n);
      for (size_t k = 0; k < 3; ++k) sum += 0.5 * c.in(0, m * 3 + k) * c.in(1, k * 4 + n);
      want.push_back(sum);
    }
  ExpectNear(c.outputs[0], want);
  const Case outer = Of("outer", {{2}, {3}});
  ExpectNear(outer.outputs[0], {outer.in(0, 0) * outer.in(1, 0), outer.in(0, 0) * outer.in(1, 1),
                                outer.in(0, 0) * outer.in(1, 2), outer.in(0, 1) * outer.in(1, 0),
                                outer.in(0, 1) * outer.in(1, 1), outer.in(0, 1) * outer.in(1, 2)});
  const Case dot = Of("dot", {{1, 3}});
  ExpectNear(dot.outputs[0], {dot.in(0, 0) * dot.in(1, 0) + dot.in(0, 1) * dot.in(1, 1) +
                              dot.in(0, 2) * dot.in(1, 2)});
}

TEST(Quantised, BothSidesInBytesWithScalesPerRow) {
  for (const char* name : {"int8_linear", "fp8_linear"}) {
    SCOPED_TRACE(name);
    const Case c = Of(name, {{2, 3}, {4, 3}});
    std::vector<double> want;
    for (size_t m = 0; m < 2; ++m)
      for (size_t n = 0; n < 4; ++n) {
        double sum = 0;
        for (size_t k = 0; k < 3; ++k) sum += c.in(0, m * 3 + k) * c.in(1, n * 3 + k);
        want.push_back(sum * c.in(2, m) * c.in(3, n));
      }
    ExpectNear(c.outputs[0], want);
    const auto whole = Build(*FindInLibrary(name), {DType::kInt32, {{2, 3}, {4, 3}}, {}});
    ASSERT_FALSE(whole.has_value());
    EXPECT_THAT(whole.error().ToString(), testing::HasSubstr("scales and results are floats"));
  }
}

TEST(Quantised, FourBitsWithAScalePerGroup) {
  Case c = Of("int4_linear", {{2, 8}, {3, 8}}, {{"group", I(4)}});
  for (size_t i = 0; i < c.inputs[1].cells.size(); ++i)
    c.inputs[1].cells[i].whole = static_cast<int64_t>(i * 73 % 256);
  const Tensor y = RunGraph(c.graph, c.inputs);
  std::vector<double> want;
  for (size_t m = 0; m < 2; ++m)
    for (size_t n = 0; n < 3; ++n) {
      double sum = 0;
      for (size_t k = 0; k < 8; ++k) {
        const int byte = static_cast<int>(c.inputs[1].cells[n * 4 + k / 2].whole);
        const int code = k % 2 == 0 ? byte % 16 : byte / 16;
        sum += c.in(0, m * 8 + k) * (code - 8) * c.in(2, n * 2 + k / 4);
      }
      want.push_back(sum);
    }
  ExpectNear(y, want);
}

TEST(Quantised, ToEightBitsUsesTheWholeRange) {
  const Case c = Of("quantize_fp8", {{2, 5}});
  for (size_t r = 0; r < 2; ++r) {
    double top = 0;
    for (size_t i = 0; i < 5; ++i) top = std::max(top, std::fabs(c.in(0, r * 5 + i)));
    EXPECT_DOUBLE_EQ(c.outputs[1].cells[r].real, top / 448);
    for (size_t i = 0; i < 5; ++i)
      EXPECT_NEAR(c.outputs[0].cells[r * 5 + i].real * top / 448, c.in(0, r * 5 + i), top / 16);
  }
}

/// As PyTorch's `.to(torch.float8_e4m3fn)`, which does not saturate, or as CUDA's conversions.
TEST(Quantised, ConversionToEightBitsSaturatesOnRequest) {
  const auto convert = [](double x, Attributes attributes) {
    Case c = Of("to_float8", {{1}}, std::move(attributes));
    c.inputs[0].cells[0].real = x;
    EXPECT_EQ(c.graph.nodes().back().type.dtype, c.outputs[0].dtype);
    return RunGraph(c.graph, c.inputs).Reals()[0];
  };
  const Attributes wide = {{"format", std::string("e5m2")}};
  Attributes saturated = {{"saturate", true}};
  EXPECT_TRUE(std::isnan(convert(1000, {})));
  EXPECT_EQ(convert(-464, {}), -448);
  EXPECT_EQ(convert(1000, saturated), 448);
  EXPECT_EQ(convert(1000, wide), 1024);
  EXPECT_EQ(convert(1e6, wide), INFINITY);
  saturated["format"] = std::string("e5m2");
  EXPECT_EQ(convert(-1e6, saturated), -57344);
  const auto wrong = Build(*FindInLibrary("to_float8"),
                           {DType::kFloat32, {{4}}, {{"format", std::string("e3m4")}}});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().ToString(), testing::HasSubstr("e4m3 or e5m2"));
}

/// softmax of the scores of `keys` keys, times their values.
std::vector<double> Attend(size_t keys, size_t dim, const std::function<double(size_t)>& score,
                           const std::function<double(size_t, size_t)>& value) {
  std::vector<double> mixed(dim, 0);
  double total = 0;
  for (size_t t = 0; t < keys; ++t) {
    const double weight = std::exp(score(t));
    total += weight;
    for (size_t d = 0; d < dim; ++d) mixed[d] += weight * value(t, d);
  }
  for (double& v : mixed) v /= total;
  return mixed;
}

TEST(Attention, WithAMaskAndWithLastKeys) {
  const Case masked = Of("attention_masked", {{2, 2, 3, 2}, {2, 1, 4, 2}},
                         {{"per_sequence", true}, {"scale", 0.5}});
  const Case last = Of("attention_varlen", {{2, 2, 3, 2}, {2, 1, 4, 2}}, {{"scale", 0.5}});
  std::vector<double> want_masked;
  std::vector<double> want_last;
  for (size_t b = 0; b < 2; ++b)
    for (size_t h = 0; h < 2; ++h)
      for (size_t s = 0; s < 3; ++s) {
        const auto score = [&](const Case& c, size_t t) {
          double sum = 0;
          for (size_t d = 0; d < 2; ++d)
            sum += c.in(0, ((b * 2 + h) * 3 + s) * 2 + d) * c.in(1, (b * 4 + t) * 2 + d);
          return 0.5 * sum;
        };
        const auto value = [&](const Case& c) {
          return [&, b](size_t t, size_t d) { return c.in(2, (b * 4 + t) * 2 + d); };
        };
        const auto one = Attend(
            4, 2, [&](size_t t) { return score(masked, t) + masked.in(3, (b * 3 + s) * 4 + t); },
            value(masked));
        want_masked.insert(want_masked.end(), one.begin(), one.end());
        const auto keys = static_cast<size_t>(last.in(3, b)) + 1;
        const auto other = Attend(keys, 2, [&](size_t t) { return score(last, t); }, value(last));
        want_last.insert(want_last.end(), other.begin(), other.end());
      }
  ExpectNear(masked.outputs[0], want_masked);
  ExpectNear(last.outputs[0], want_last);
}

TEST(Attention, ToKeysInPages) {
  const Case c = Of("attention_paged", {{2, 4, 3}, {5, 2, 2, 3}, {2, 2}}, {{"scale", 0.7}});
  std::vector<double> want;
  for (size_t b = 0; b < 2; ++b)
    for (size_t h = 0; h < 4; ++h) {
      const auto at = [&](size_t t, size_t d) {  // in the pool, of key t
        const auto page = static_cast<size_t>(c.in(3, b * 2 + t / 2));
        return ((page * 2 + t % 2) * 2 + h / 2) * 3 + d;
      };
      const auto score = [&](size_t t) {
        double sum = 0;
        for (size_t d = 0; d < 3; ++d) sum += c.in(0, (b * 4 + h) * 3 + d) * c.in(1, at(t, d));
        return 0.7 * sum;
      };
      const auto keys = static_cast<size_t>(c.in(4, b)) + 1;
      const auto one = Attend(keys, 3, score,
                              [&](size_t t, size_t d) { return c.in(2, at(t, d)); });
      want.insert(want.end(), one.begin(), one.end());
    }
  ExpectNear(c.outputs[0], want);
}

TEST(Rope, TurnsNeighboursWhenInterleaved) {
  const Case rope = Of("rope", {{3, 4}}, {{"base", 100.0}, {"interleaved", true}});
  std::vector<double> want(12);
  for (size_t s = 0; s < 3; ++s)
    for (size_t i = 0; i < 2; ++i) {
      const double angle = static_cast<double>(s) *
                           std::pow(100.0, -2.0 * static_cast<double>(i) / 4);
      const double x = rope.in(0, s * 4 + 2 * i);
      const double y = rope.in(0, s * 4 + 2 * i + 1);
      want[s * 4 + 2 * i] = x * std::cos(angle) - y * std::sin(angle);
      want[s * 4 + 2 * i + 1] = y * std::cos(angle) + x * std::sin(angle);
    }
  ExpectNear(rope.outputs[0], want, 1e-6);  // the angles are float32
}

TEST(Gated, TheFirstHalfThroughAFunctionTimesTheSecond) {
  const Case silu = Of("swiglu_packed", {{2, 6}});
  const Case gelu = Of("geglu_packed", {{2, 6}});
  std::vector<double> want_silu;
  std::vector<double> want_gelu;
  for (size_t r = 0; r < 2; ++r)
    for (size_t i = 0; i < 3; ++i) {
      const double x = silu.in(0, r * 6 + i);
      const double z = gelu.in(0, r * 6 + i);
      want_silu.push_back(x / (1 + std::exp(-x)) * silu.in(0, r * 6 + 3 + i));
      want_gelu.push_back(z * 0.5 * std::erfc(-z / std::sqrt(2.0)) * gelu.in(0, r * 6 + 3 + i));
    }
  ExpectNear(silu.outputs[0], want_silu);
  ExpectNear(gelu.outputs[0], want_gelu);
}

}  // namespace
}  // namespace atunner::graph
