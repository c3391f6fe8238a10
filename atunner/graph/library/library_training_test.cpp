// Losses, optimizers and norms of training against their definitions, and what gradients are asked
// for.
#include <algorithm>

#include "atunner/graph/compose.h"
#include "atunner/graph/library/library_support_test.h"

namespace atunner::graph {
namespace {

using testing::HasSubstr;

TEST(Losses, OfThreeOperandsAndWithoutAMean) {
  const Case ranking = Of("margin_ranking_loss", {{4}},
                          {{"margin", 0.5}, {"reduction", std::string("none")}});
  const Case normal = Of("gaussian_nll_loss", {{4}}, {{"reduction", std::string("sum")}});
  std::vector<double> want;
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    want.push_back(std::fmax(0, -ranking.in(2, i) * (ranking.in(0, i) - ranking.in(1, i)) + 0.5));
    const double v = std::fabs(normal.in(2, i));
    sum += 0.5 * (std::log(v) + std::pow(normal.in(0, i) - normal.in(1, i), 2) / v);
  }
  ExpectNear(ranking.outputs[0], want);
  ExpectNear(normal.outputs[0], {sum});
  const auto wrong = Build(*FindInLibrary("mse_loss"),
                           {DType::kFloat32, {{4}}, {{"reduction", std::string("max")}}});
  EXPECT_THAT(wrong.error().ToString(), HasSubstr("reduction=max"));
}

TEST(Losses, LabelsPickAndSmooth) {
  const Case smooth = Of("cross_entropy", {{3, 5}}, {{"label_smoothing", 0.2}});
  double sum = 0;
  for (size_t r = 0; r < 3; ++r) {
    double total = 0;
    for (size_t c = 0; c < 5; ++c) total += std::exp(smooth.in(0, r * 5 + c));
    for (size_t c = 0; c < 5; ++c) {
      const double target = 0.2 / 5 + (static_cast<double>(c) == smooth.in(1, r) ? 0.8 : 0);
      sum -= target * (smooth.in(0, r * 5 + c) - std::log(total)) / 3;
    }
  }
  ExpectNear(smooth.outputs[0], {sum});
  const Case nll = Of("nll_loss", {{3, 5}});
  double picked = 0;
  for (size_t r = 0; r < 3; ++r) picked -= nll.in(0, r * 5 + static_cast<size_t>(nll.in(1, r))) / 3;
  ExpectNear(nll.outputs[0], {picked});
}

TEST(Losses, ALabelMayCountNothing) {
  const auto label = static_cast<int64_t>(Of("nll_loss", {{3, 5}}).in(1, 1));
  const Attributes ignored = {{"ignore_index", label}};
  const Case mean = Of("nll_loss", {{3, 5}}, ignored);
  double sum = 0;
  double rows = 0;
  for (size_t r = 0; r < 3; ++r) {
    if (static_cast<int64_t>(mean.in(1, r)) == label) continue;
    sum -= mean.in(0, r * 5 + static_cast<size_t>(mean.in(1, r)));
    ++rows;
  }
  ExpectNear(mean.outputs[0], {sum / rows});
  const Case none = Of("cross_entropy", {{3, 5}},
                       {{"ignore_index", label}, {"reduction", std::string("none")}});
  EXPECT_EQ(none.outputs[0].Reals()[1], 0);
}

TEST(Optimizers, StepAsTheirPapersSay) {
  const Case rms = Of("rmsprop", {{5}}, {{"lr", 0.1}, {"eps", 1e-3}});
  const Case ada = Of("adagrad", {{5}}, {{"lr", 0.1}, {"eps", 1e-3}});
  const Case lion = Of("lion", {{5}}, {{"lr", 0.1}, {"weight_decay", 0.2}});
  std::vector<double> want_rms;
  std::vector<double> want_ada;
  std::vector<double> want_lion;
  for (size_t i = 0; i < 5; ++i) {
    const double v = 0.99 * std::fabs(rms.in(2, i)) + 0.01 * std::pow(rms.in(1, i), 2);
    want_rms.push_back(rms.in(0, i) - 0.1 * rms.in(1, i) / (std::sqrt(v) + 1e-3));
    const double all = std::fabs(ada.in(2, i)) + std::pow(ada.in(1, i), 2);
    want_ada.push_back(ada.in(0, i) - 0.1 * ada.in(1, i) / (std::sqrt(all) + 1e-3));
    const double c = 0.9 * lion.in(2, i) + 0.1 * lion.in(1, i);
    want_lion.push_back(lion.in(0, i) * (1 - 0.1 * 0.2) - 0.1 * (c > 0 ? 1 : -1));
  }
  ExpectNear(rms.outputs[0], want_rms);
  ExpectNear(ada.outputs[0], want_ada);
  ExpectNear(lion.outputs[0], want_lion);
}

TEST(Optimizers, TakeManyTensorsAtOnce) {
  const Case sgd = Of("sgd", {{3}, {2, 2}}, {{"lr", 0.1}});
  ASSERT_EQ(sgd.graph.inputs().size(), 6u);
  ASSERT_EQ(sgd.outputs.size(), 4u);
  EXPECT_EQ(sgd.graph.outputs()[3].name, "v_next1");
  std::vector<double> second;
  for (size_t i = 0; i < 4; ++i)
    second.push_back(sgd.in(3, i) - 0.1 * (0.9 * sgd.in(5, i) + sgd.in(4, i)));
  ExpectNear(sgd.outputs[2], second);

  const Case clip = Of("clip_grad_norm", {{3}, {4}}, {{"max_norm", 0.5}});
  double squares = 0;
  for (size_t i = 0; i < 3; ++i) squares += std::pow(clip.in(0, i), 2);
  for (size_t i = 0; i < 4; ++i) squares += std::pow(clip.in(1, i), 2);
  std::vector<double> clipped;
  for (size_t i = 0; i < 4; ++i)
    clipped.push_back(clip.in(1, i) * 0.5 / (std::sqrt(squares) + 1e-6));
  ExpectNear(clip.outputs[1], clipped);

  Case unscale = Of("unscale", {{3}, {2}});
  EXPECT_EQ(unscale.outputs.back().cells[0].whole, 0);
  ExpectNear(unscale.outputs[1],
             {unscale.in(2, 0) / unscale.in(0, 0), unscale.in(2, 1) / unscale.in(0, 0)});
  unscale.inputs[1].cells[2].real = INFINITY;
  EXPECT_EQ(Evaluate(unscale.graph, unscale.inputs).value().back().cells[0].whole, 1);
}

TEST(Norms, BatchesLeaveRunningMomentsAndResidualsTheirSum) {
  const Case batch = Of("batch_norm_training", {{3, 2, 2}}, {{"momentum", 0.3}});
  std::vector<double> means;
  std::vector<double> variances;
  for (size_t c = 0; c < 2; ++c) {
    double mean = 0;
    double squares = 0;
    for (size_t n = 0; n < 3; ++n)
      for (size_t i = 0; i < 2; ++i) mean += batch.in(0, (n * 2 + c) * 2 + i) / 6;
    for (size_t n = 0; n < 3; ++n)
      for (size_t i = 0; i < 2; ++i)
        squares += std::pow(batch.in(0, (n * 2 + c) * 2 + i) - mean, 2);
    means.push_back(0.7 * batch.in(3, c) + 0.3 * mean);
    variances.push_back(0.7 * batch.in(4, c) + 0.3 * squares / 5);
  }
  ExpectNear(batch.outputs[1], means);
  ExpectNear(batch.outputs[2], variances);
  ExpectNear(batch.outputs[0], Of("batch_norm", {{3, 2, 2}}).outputs[0].Reals());

  const Case rms = Of("add_rms_norm", {{1, 3}}, {{"eps", 0.25}});
  double squares = 0;
  for (size_t i = 0; i < 3; ++i) squares += std::pow(rms.in(0, i) + rms.in(1, i), 2) / 3;
  std::vector<double> want;
  std::vector<double> sums;
  for (size_t i = 0; i < 3; ++i) {
    sums.push_back(rms.in(0, i) + rms.in(1, i));
    want.push_back(sums.back() / std::sqrt(squares + 0.25) * rms.in(2, i));
  }
  ExpectNear(rms.outputs[0], want);
  ExpectNear(rms.outputs[1], sums);
}

TEST(Softmax, BackwardFromTheResultIsTheDerivedGradient) {
  const Case forward = Of("softmax", {{3, 4}}, {{"axis", I(0)}});
  Case backward = Of("softmax_backward", {{3, 4}}, {{"axis", I(0)}});
  backward.inputs[0] = forward.outputs[0];
  const Tensor dx = RunGraph(backward.graph, backward.inputs);
  for (size_t i = 0; i < 12; ++i) {
    double sum = 0;  // Σ dy_j y_j (δ_ij - y_i) along the column
    for (size_t j = i % 4; j < 12; j += 4)
      sum += backward.in(1, j) * backward.in(0, j) * ((i == j ? 1 : 0) - backward.in(0, i));
    EXPECT_NEAR(dx.cells[i].real, sum, 1e-12);
  }
}

TEST(Gradient, ByOneInputTakesNoMoreThanItNeeds) {
  const auto build = [](const char* wrt) {
    return Build(*FindInLibrary("linear_backward"),
                 {DType::kFloat64, {{2, 3}, {4, 3}}, {{"wrt", std::string(wrt)}}});
  };
  const ValidGraph whole = build("all").value();
  const ValidGraph part = build("weight").value();
  ASSERT_EQ(part.outputs().size(), 1u);
  EXPECT_EQ(part.outputs()[0].name, "dweight");
  ASSERT_EQ(part.inputs().size(), 2u) << "x and dy, but no weight and no bias";
  const auto inputs = RandomInputs(whole, 3);  // x, weight, bias, dy
  const Tensor dweight = RunGraph(part, {inputs[0], inputs[3]});
  ExpectNear(dweight, Evaluate(whole, inputs).value()[1].Reals());
  EXPECT_THAT(build("w").error().ToString(), HasSubstr("there are dx, dweight, dbias"));
}

TEST(Together, ComputesWhatItsGraphsCompute) {
  const std::vector<ValidGraph> graphs = {
      Build(*FindInLibrary("mul"), {DType::kFloat64, {{3}}, {}}).value(),
      Build(*FindInLibrary("sub"), {DType::kFloat64, {{3}}, {}}).value()};
  const ValidGraph both = Together("both", graphs).value();
  ASSERT_EQ(both.inputs().size(), 2u);
  const auto inputs = RandomInputs(both, 9);
  const auto outputs = Evaluate(both, inputs).value();
  EXPECT_EQ(both.outputs()[1].name, "sub_y");
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(outputs[0].cells[i].real, inputs[0].cells[i].real * inputs[1].cells[i].real);
    EXPECT_EQ(outputs[1].cells[i].real, inputs[0].cells[i].real - inputs[1].cells[i].real);
  }
  const std::vector<ValidGraph> other = {
      graphs[0], Build(*FindInLibrary("abs"), {DType::kFloat32, {{3}}, {}}).value()};
  EXPECT_THAT(Together("both", other).error().ToString(), HasSubstr("of two types"));
}

}  // namespace
}  // namespace atunner::graph
