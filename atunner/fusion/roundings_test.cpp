#include "atunner/fusion/roundings.h"

#include <string>

#include "atunner/fusion/fusion_support_test.h"
#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/rewrite/rewrite.h"
#include "atunner/graph/text.h"

namespace atunner::fusion {
namespace {

graph::ValidGraph Parsed(const std::string& text) { return graph::Parse(text, "test.atg").value(); }

const char* const kTies = R"(
graph ties
input a: bfloat16[2]
input b: bfloat16[2]
p = a * b
e = p == a
y = cast(e, float32)
output y
)";

/// 1.0078125 · 1.0078125 is 1.01568603515625, which is 1.015625 in bfloat16.
graph::Tensor Numbers(double first, double second) {
  return {DType::kBFloat16, {2}, {graph::Real(first), graph::Real(second)}};
}

TEST(Roundings, StayBeforeComparisonsThroughFusion) {
  const graph::ValidGraph given = Parsed(R"(
graph ties
input a: bfloat16[2]
input b: bfloat16[2]
input c: bfloat16[2]
p = a * b
e = p == c
y = cast(e, float32)
output y
)");
  const RoundedGraph rounded = WithRoundings(given, Roundings::kWhereExact);
  ASSERT_EQ(rounded.kept.size(), 1u);
  EXPECT_THAT(rounded.kept[0], testing::HasSubstr("comparison"));
  const auto run = [&](const graph::ValidGraph& graph) {
    const std::vector<graph::Tensor> inputs = {Numbers(1.0078125, 2), Numbers(1.0078125, 3),
                                               Numbers(1.015625, 6)};
    return graph::Evaluate(graph::FuseMaps(graph), inputs).value()[0].Reals();
  };
  EXPECT_THAT(run(rounded.graph), testing::ElementsAre(1, 1));
  EXPECT_THAT(run(given), testing::ElementsAre(0, 1)) << "exact evaluation does not round";
}

TEST(Roundings, AreNotAddedWhereTheSignDecides) {
  const graph::ValidGraph relu = Parsed(R"(
graph relu
input a: bfloat16[2]
input b: bfloat16[2]
p = a * b
y = select(p > 0, p, 0)
output y
)");
  EXPECT_TRUE(WithRoundings(relu, Roundings::kWhereExact).kept.empty());
  EXPECT_EQ(WithRoundings(relu, Roundings::kAll).kept.size(), 2u);
}

TEST(Roundings, OfInputsAndOfFloat32AreNone) {
  EXPECT_TRUE(WithRoundings(Parsed("graph g\ninput a: float32[2]\np = a * a\ne = p == a\n"
                                   "y = cast(e, float32)\noutput y\n"),
                            Roundings::kAll)
                  .kept.empty());
  EXPECT_TRUE(WithRoundings(Parsed("graph g\ninput a: bfloat16[2]\ninput b: bfloat16[2]\n"
                                   "e = a == b\ny = cast(e, float32)\noutput y\n"),
                            Roundings::kWhereExact)
                  .kept.empty());
  EXPECT_EQ(WithRoundings(Parsed(kTies), Roundings::kWhereExact).kept.size(), 1u);
}

TEST(Roundings, StayBeforeIndicesOrdersAndIntegers) {
  for (const char* use :
       {"y = reduce_argmax(p, axes=[0])", "y = sort(p, axis=0)", "y = cast(p, int32)",
        "r = reshape(p, shape=[2, 1])\ny = reduce_argmin(r, axes=[0])"}) {
    SCOPED_TRACE(use);
    const RoundedGraph rounded = WithRoundings(
        Parsed(std::string("graph g\ninput a: bfloat16[2]\np = a * a\n") + use + "\noutput y\n"),
        Roundings::kWhereExact);
    EXPECT_EQ(rounded.kept.size(), 1u);
  }
}

}  // namespace
}  // namespace atunner::fusion
