// Which values of a graph may be another correct kernel's, and which decide something.
#include "atunner/cuda_text/rounding.h"

#include <gtest/gtest.h>

#include "atunner/cuda_text/baseline_kernels.h"
#include "atunner/graph/graph_support_test.h"

namespace atunner::graph {
namespace {

using Reading = StepRounding::Reading;

/// The roundings of the last step of a graph with inputs a and b.
StepRounding Last(const std::string& lines) {
  const ValidGraph graph = MustParse("graph g\ninput a: float32[4, 8]\ninput b: float32[4, 8]\n" +
                                     lines + "\noutput y\n");
  return RoundingOf(graph, graph.node(graph.outputs()[0].node));
}

TEST(Rounding, SumsAndProductsRoundTheirTerms) {
  for (const char* lines :
       {"y = reduce_sum(a, axes=[1])", "y = reduce_mean(a, axes=[1])", "y = scan_prod(a, axis=1)",
        "y = contract(a, b, equation=\"mk,nk->mn\")"}) {
    const StepRounding rounding = Last(lines);
    EXPECT_TRUE(rounding.rounds) << lines;
    for (const auto& operand : rounding.operands)
      EXPECT_EQ(operand.reading, Reading::kTerms) << lines;
  }
}

TEST(Rounding, WhatIsMovedOrChosenIsExact) {
  for (const char* lines : {"y = reduce_max(a, axes=[1])", "y = transpose(a, order=[1, 0])",
                            "y = scan_max(a, axis=1)", "y = maximum(-a, abs(b))"}) {
    const StepRounding rounding = Last(lines);
    EXPECT_FALSE(rounding.rounds) << lines;
    EXPECT_EQ(rounding.operands[0].reading, Reading::kValue) << lines;
  }
  EXPECT_TRUE(Last("y = a - b").rounds);
  EXPECT_TRUE(Last("y = select(a > 0, exp(b), b)").rounds);
}

TEST(Rounding, NoRoundingDecidesAComparisonOrAStep) {
  const auto readings = [](const std::string& expression) {
    const StepRounding rounding = Last("y = " + expression);
    return std::pair(rounding.operands[0].reading, rounding.operands[1].reading);
  };
  EXPECT_EQ(readings("select(a > 0, b, 2 * b)"), std::pair(Reading::kAsIs, Reading::kValue));
  EXPECT_EQ(readings("select(b + 1 == a, b, 2 * b)"), std::pair(Reading::kAsIs, Reading::kAsIs));
  EXPECT_EQ(readings("a + round(b)"), std::pair(Reading::kValue, Reading::kAsIs));
  EXPECT_EQ(readings("a + cast(cast(b, int32), float32)"),
            std::pair(Reading::kValue, Reading::kAsIs));
  EXPECT_EQ(readings("select(a == -inf, 0, exp(a - b))"),
            std::pair(Reading::kValue, Reading::kValue))
      << "what is infinite stays so";
  EXPECT_EQ(Last("y = reduce_argmax(a, axes=[1])").operands[0].reading, Reading::kAsIs);
  EXPECT_EQ(Last("y = sort(a, axis=1)").operands[0].reading, Reading::kAsIs);
}

TEST(Rounding, OfBaselineKernelsGoesStepByStep) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: bfloat16[4, 8]
wide = cast(x, float32)
mean = reduce_mean(wide, axes=[-1], keep=true)
y = cast(wide - mean, bfloat16)
output y
)");
  const auto steps = BaselineRoundings(graph, BaselineForm::kErrorBaseline).value();
  const RenderedKernel kernel = BaselineKernels(graph, BaselineForm::kErrorBaseline).value();
  ASSERT_EQ(steps.size(), kernel.plan.steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    EXPECT_LT(steps[i].operands.size(), kernel.plan.steps[i].args.size());
  EXPECT_EQ(steps.front().operands[0].stored, DType::kBFloat16);
  EXPECT_EQ(steps.back().operands.back().stored, DType::kFloat32) << "workspaces are wide";
  EXPECT_EQ(steps.back().stored, DType::kBFloat16);
}

}  // namespace
}  // namespace atunner::graph
