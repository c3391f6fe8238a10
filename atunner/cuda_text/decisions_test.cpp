// Data-dependent decisions are found, and their operands are stored.
#include "atunner/cuda_text/decisions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/graph_support_test.h"

namespace atunner::graph {
namespace {

ValidGraph Of(const std::string& lines) {
  return MustParse("graph g\ninput a: float32[4, 8]\ninput b: float32[4, 8]\n" + lines +
                   "\noutput y\n");
}
size_t Maps(const ValidGraph& graph) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.nodes(), [](const Node& node) { return node.As<Map>(); }));
}
bool AreIndices(const std::string& lines) {
  const ValidGraph graph = Of(lines);
  return IsIndexValued(graph, graph.outputs()[0].node);
}

TEST(Decisions, OnlyWhatIsRoundedIsAMatterOfItsLastDigit) {
  for (const char* computed :
       {"y = round(a * b)", "y = cast(a / b, int8)", "y = select(a + b > 0, a, b)",
        "s = a * b\ny = sort(s, axis=1)", "m = reduce_mean(a, axes=[1], keep=true)\ny = a > m",
        "s = exp(a)\ny = reduce_argmax(s, axes=[1])", "n = cast(a, bfloat16)\ny = sort(n, axis=1)"})
    EXPECT_TRUE(HasDataDependentDecisions(Of(computed))) << computed;
  for (const char* exact :
       {"y = round(a)", "y = select(a > b, a * b, b)", "y = sort(a, axis=1)",
        "y = floor(-abs(a)) * b", "m = reduce_max(a, axes=[1], keep=true)\ny = a == m",
        "y = maximum(a * b, 0)", "y = a * b", "y = select(exp(a) == inf, 0, b)"})
    EXPECT_FALSE(HasDataDependentDecisions(Of(exact))) << exact;
}

TEST(Decisions, ComputedDecidersAreValuesOfTheirOwn) {
  for (const auto& [lines, maps] : std::vector<std::pair<std::string, size_t>>{
           {"y = round(a / b)", 2},
           {"y = round(floor(a * b) * b)", 3},
           {"y = select(a * b > a + b, 2 * (a * b), b)", 3},
           {"y = round(a) * b", 1},
           {"y = cast(minimum(round(a / b), 127), int8)", 2}}) {
    const ValidGraph graph = Of(lines);
    const ValidGraph apart = WithDecisionOperandsStored(graph);
    EXPECT_EQ(Maps(apart), maps) << lines;
    std::vector<double> a, b;
    for (int i = 0; i < 32; ++i) {
      a.push_back(1.7 * i - 20.3);
      b.push_back(0.3 * i - 4.1);
    }
    const std::vector<Tensor> inputs{Tensor::Of(DType::kFloat32, {4, 8}, a),
                                     Tensor::Of(DType::kFloat32, {4, 8}, b)};
    EXPECT_EQ(Evaluate(apart, inputs).value()[0].Reals(),
              Evaluate(graph, inputs).value()[0].Reals())
        << lines;
  }
}

TEST(Decisions, OfPlacesNoneIsNearer) {
  EXPECT_TRUE(AreIndices("y = sort(a, axis=1)"));
  EXPECT_TRUE(AreIndices("s = sort(a, axis=1)\ny = mod(s, 4)"));
  EXPECT_TRUE(
      AreIndices("s = reduce_argmin(a, axes=[1], keep=true)\ny = transpose(s, order=[1, 0])"));
  EXPECT_FALSE(AreIndices("y = cast(round(a * b), int32)"));
  EXPECT_FALSE(AreIndices("s = sort(a, axis=1)\ny = gather(a, s, axis=1, batch=1)"));
  EXPECT_FALSE(AreIndices("s = cast(a > b, int64)\ny = reduce_sum(s, axes=[1])"));
}

}  // namespace
}  // namespace atunner::graph
