// Derived gradients against central differences: of every operator of the library that claims to
// have one.
#include "atunner/graph/gradient/gradient.h"

#include <array>
#include <cmath>

#include "atunner/graph/graph_support_test.h"
#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

/// Sum over all float outputs of output · weight.
double Weighted(const ValidGraph& graph, const std::vector<Tensor>& inputs,
                const std::vector<Tensor>& weights) {
  const auto outputs = Evaluate(graph, inputs).value();
  double sum = 0;
  size_t next = 0;
  for (const Tensor& output : outputs) {
    if (!IsFloat(output.dtype)) continue;
    const Tensor& weight = weights[next++];
    for (size_t i = 0; i < output.cells.size(); ++i)
      sum += output.cells[i].real * weight.cells[i].real;
  }
  return sum;
}

void ExpectGradient(const ValidGraph& graph, std::vector<Tensor> inputs, double tolerance = 2e-5) {
  const auto backward = Gradient(graph);
  ASSERT_TRUE(backward.has_value()) << backward.error().ToString();
  std::vector<Tensor> weights;
  for (const auto& output : graph.outputs()) {
    const TensorType& type = graph.node(output.node).type;
    if (IsFloat(type.dtype)) weights.push_back(RandomTensor(type, 77 + weights.size()));
  }
  std::vector<Tensor> all = inputs;
  all.insert(all.end(), weights.begin(), weights.end());
  const auto gradients = Evaluate(*backward, all);
  ASSERT_TRUE(gradients.has_value()) << gradients.error().ToString();
  size_t next = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!IsFloat(inputs[k].dtype)) continue;
    const Tensor& gradient = gradients.value()[next++];
    ASSERT_EQ(gradient.shape, inputs[k].shape);
    for (size_t i = 0; i < gradient.cells.size(); ++i) {
      double& x = inputs[k].cells[i].real;
      const double kept = x;
      constexpr double kStep = 1e-5;
      x = kept + kStep;
      const double above = Weighted(graph, inputs, weights);
      x = kept - kStep;
      const double below = Weighted(graph, inputs, weights);
      x = kept;
      const double numeric = (above - below) / (2 * kStep);
      ASSERT_NEAR(gradient.cells[i].real, numeric, tolerance * (1 + std::fabs(numeric)))
          << "input " << k << ", element " << i;
    }
  }
}

TEST(Gradient, OfEveryOperatorThatClaimsOne) {
  size_t checked = 0;
  for (const LibraryOperator& op : Library()) {
    if (!op.differentiable) continue;
    SCOPED_TRACE(op.name);
    const auto graph = Build({&op, false}, {DType::kFloat64, op.example, {}});
    if (!graph && op.name.starts_with("bitwise")) continue;  // integers alone
    ASSERT_TRUE(graph.has_value()) << graph.error().ToString();
    auto inputs = RandomInputs(*graph, 41);
    for (Tensor& input : inputs) {
      for (Cell& cell : input.cells) {
        // Between 0.1 and 0.9: inside of every function's domain, and off the corners at integers
        // and halves.
        if (IsFloat(input.dtype)) cell.real = 0.1 + 0.8 / (1 + std::exp(-cell.real));
        if (IsFloat(input.dtype) && op.name == "acosh") cell.real += 1;
        if (!IsFloat(input.dtype)) cell.whole = std::abs(cell.whole) % 2;
      }
    }
    ExpectGradient(*graph, inputs);
    ASSERT_FALSE(testing::Test::HasFatalFailure());
    ++checked;
  }
  EXPECT_GT(checked, 120u);
}

TEST(Gradient, WithAttributesThatChangeTheRule) {
  const auto check = [](const char* name, std::vector<std::vector<int64_t>> shapes,
                        Attributes attributes) {
    SCOPED_TRACE(name);
    const auto graph = Build(*FindInLibrary(name),
                             {DType::kFloat64, std::move(shapes), std::move(attributes)});
    ASSERT_TRUE(graph.has_value()) << graph.error().ToString();
    ExpectGradient(*graph, RandomInputs(*graph, 4), 1e-4);
  };
  const auto i = [](int64_t n) { return atunner::Value(n); };
  check("conv", {{2, 4, 7, 6}, {6, 2, 3, 2}},
        {{"stride", i(2)}, {"padding", i(1)}, {"dilation", i(2)}, {"groups", i(2)}});
  check("conv_transpose", {{1, 4, 3}, {4, 1, 3}},
        {{"stride", i(2)}, {"padding", i(1)}, {"groups", i(2)}, {"output_padding", i(1)}});
  check("max_pool", {{1, 2, 5, 5}}, {{"size", i(3)}, {"stride", i(2)}, {"padding", i(1)}});
  check("avg_pool", {{1, 1, 5, 4}}, {{"size", i(3)}, {"stride", i(1)}, {"padding", i(1)}});
  check("cumsum", {{3, 4}}, {{"axis", i(0)}, {"reverse", true}, {"exclusive", true}});
  check("cumprod", {{2, 4}}, {{"exclusive", true}});
  check("attention_gqa", {{1, 4, 3, 2}, {1, 2, 5, 2}}, {{"causal", true}, {"window", i(3)}});
  check("batched_matmul", {{2, 4, 3}, {2, 5, 4}}, {{"transpose_a", true}, {"transpose_b", true}});
  check("var", {{3, 4}}, {{"axis", std::string("all")}});
  check("norm", {{3, 4}}, {{"p", 3.0}});
}

// y / x says nothing of a factor of zero, but the product of the others does.
TEST(Gradient, OfProductsWithZeros) {
  const std::vector<double> values = {1, 0, 2, 3, 0, 4, 0, 2, 1.5, 2, -3, 4, 0, 0, 0, 0};
  const auto check = [&](const char* name, const Attributes& attributes) {
    const ValidGraph graph = Build(*FindInLibrary(name), {DType::kFloat64, {{4, 4}}, attributes})
                                 .value();
    ExpectGradient(graph, {Tensor::Of(DType::kFloat64, {4, 4}, values)});
  };
  check("prod", {});
  check("prod", {{"axis", int64_t{0}}});
  check("cumprod", {});
  check("cumprod", {{"axis", int64_t{0}}, {"exclusive", true}});
  check("cumprod", {{"reverse", true}});
  check("cumprod", {{"reverse", true}, {"exclusive", true}});
}

TEST(Gradient, StopsUnderARootOfZero) {
  for (const char* name : {"norm", "std", "normalize"}) {
    const ValidGraph backward = Build(*FindInLibrary(std::string(name) + "_backward"),
                                      {DType::kFloat64, {{2, 3}}, {}})
                                    .value();
    auto inputs = RandomInputs(backward, 3);
    for (size_t i = 0; i < 3; ++i) inputs[0].cells[i].real = 0;
    for (const Cell& cell : RunGraph(backward, inputs).cells)
      EXPECT_TRUE(std::isfinite(cell.real)) << name;
  }
  const ValidGraph cubes =
      Build(*FindInLibrary("norm_backward"), {DType::kFloat64, {{1, 2}}, {{"p", 3.0}}}).value();
  EXPECT_EQ(RunGraph(cubes, {Tensor::Of(DType::kFloat64, {1, 2}, std::array{0.0, 0.0}),
                             Tensor::Of(DType::kFloat64, {1}, std::array{1.0})})
                .Reals(),
            (std::vector<double>{0, 0}));
}

TEST(Gradient, OfAMaximumIsSharedOrGoesToTheFirst) {
  const auto gradient = [](const std::string& text, const std::vector<double>& x) {
    const ValidGraph backward = Gradient(MustParse(text)).value();
    return RunGraph(backward, {Tensor::Of(DType::kFloat64, {2, 3}, x),
                               Tensor::Of(DType::kFloat64, {}, std::array{6.0})})
        .Reals();
  };
  const std::string head = "graph g\ninput x: float64[2, 3]\ny = reduce_max(x, axes=[0, 1]";
  EXPECT_EQ(gradient(head + ")\noutput y\n", {1, 2, 0, 2, 2, 1}),
            (std::vector<double>{0, 2, 0, 2, 2, 0}));
  EXPECT_EQ(gradient(head + ", first=true)\noutput y\n", {1, 2, 0, 2, 2, 1}),
            (std::vector<double>{0, 6, 0, 0, 0, 0}));
  EXPECT_EQ(gradient(head + ", first=true)\noutput y\n", {1, 2, 0, NAN, 2, NAN}),
            (std::vector<double>{0, 0, 0, 6, 0, 0}));
}

// exp(800) is infinite, and the other branch is taken.
TEST(Gradient, OfABranchThatIsNotTakenIsNoNan) {
  const ValidGraph backward = Gradient(MustParse("graph g\ninput x: float64[2]\n"
                                                 "y = select(x > 0, x, expm1(x))\noutput y\n"))
                                  .value();
  const auto dx = RunGraph(backward, {Tensor::Of(DType::kFloat64, {2}, std::array{800.0, -20.0}),
                                      Tensor::Of(DType::kFloat64, {2}, std::array{3.0, 1.0})})
                      .Reals();
  EXPECT_EQ(dx[0], 3);
  EXPECT_NEAR(dx[1], std::exp(-20.0), 1e-24);
}

TEST(Gradient, ANodeWithoutARuleIsAClearError) {
  const ValidGraph graph = MustParse(
      "graph g\ninput x: float32[4]\ny = scan_max(x, axis=0)\noutput y\n");
  EXPECT_THAT(Gradient(graph).error().ToString(), testing::HasSubstr("scan_max has no derivative"));
}

TEST(Gradient, WhatAnInputDoesNotReachIsZero) {
  const ValidGraph graph = MustParse(
      "graph g\ninput x: float64[3]\ninput z: float64[2]\ninput n: int32[3]\ny = x * cast(n, "
      "float64) + "
      "floor(x)\noutput y\n");
  const ValidGraph backward = Gradient(graph).value();
  ASSERT_EQ(backward.outputs().size(), 2u);
  EXPECT_EQ(backward.outputs()[0].name, "dx");
  EXPECT_EQ(backward.outputs()[1].name, "dz");
  ExpectGradient(graph, RandomInputs(graph, 1));
}

TEST(Gradient, CopiesWithSymbols) {
  const ValidGraph graph = MustParse(
      "graph g\ndim B = 1..8\ninput x: float64[B, 3]\nm = reduce_mean(x, axes=[0])\ny = m * "
      "m\noutput y\n");
  const ValidGraph backward = Specialise(Gradient(graph).value(), {{"B", 5}}).value();
  const auto inputs = RandomInputs(backward, 2);
  const Tensor dx = RunGraph(backward, inputs);
  for (size_t r = 0; r < 5; ++r)
    for (size_t c = 0; c < 3; ++c) {
      double mean = 0;
      for (size_t k = 0; k < 5; ++k) mean += inputs[0].cells[k * 3 + c].real / 5;
      EXPECT_NEAR(dx.cells[r * 3 + c].real, 2 * mean * inputs[1].cells[c].real / 5, 1e-12);
    }
}

// Kernels never look at masked keys, so that their gradients must not say that they met NaN there.
TEST(Gradient, OfMaskedAttentionKeepsNanAmongThoseWhoMeetIt) {
  const auto graph = Build(*FindInLibrary("attention_gqa"),
                           {DType::kFloat32, {{1, 1, 4, 2}, {1, 1, 4, 2}}, {{"causal", true}}});
  const ValidGraph backward = Gradient(*graph).value();
  std::vector<Tensor> inputs = RandomInputs(backward, 5);
  constexpr size_t kQuery = 1;
  inputs[0].cells[kQuery * 2].real = NAN;  // sees keys 0 and 1
  const auto gradients = Evaluate(backward, inputs).value();
  const auto met = [](const Tensor& gradient, size_t row) {
    return std::isnan(gradient.cells[row * 2].real) || std::isnan(gradient.cells[row * 2 + 1].real);
  };
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(met(gradients[0], row), row == kQuery) << "dq, row " << row;
    EXPECT_EQ(met(gradients[1], row), row <= kQuery) << "dk, row " << row;
    EXPECT_EQ(met(gradients[2], row), row <= kQuery) << "dv, row " << row;
  }
}

}  // namespace
}  // namespace atunner::graph
