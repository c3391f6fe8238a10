// Groups of tensors with the same computation.
#include "atunner/graph/match/multi_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/graph/graph_support_test.h"
#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

using testing::UnorderedElementsAre;

ValidGraph OfOperator(const char* name, std::vector<std::vector<int64_t>> shapes) {
  return Build(*FindInLibrary(name), {DType::kFloat32, std::move(shapes), {}, false}).value();
}
std::optional<MultiTensorGroups> OfLines(const std::string& lines) {
  return FindMultiTensorGroups(MustParse("graph g\n" + lines));
}
std::vector<std::string> NamesOf(const ValidGraph& graph, const std::vector<NodeId>& ids) {
  std::vector<std::string> names;
  for (NodeId id : ids) names.push_back(graph.node(id).name);
  return names;
}

TEST(MultiTensor, ParametersOfAnOptimizerAreOneKindWhateverTheirShapes) {
  const ValidGraph graph = OfOperator("adamw", {{3, 5}, {7}, {2, 3, 4}});
  const auto found = FindMultiTensorGroups(graph);
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->groups.size(), 1u);
  const TensorGroup& kind = found->groups[0];
  ASSERT_EQ(kind.size(), 3u);
  EXPECT_EQ(kind[2].elements, 24);
  const std::vector<std::string> names = NamesOf(graph, kind[0].inputs);
  EXPECT_THAT(names, UnorderedElementsAre("p0", "m0", "grad0", "v0"));
  for (size_t i = 0; i < names.size(); ++i)  // in one order, whatever it is
    EXPECT_EQ(graph.node(kind[1].inputs[i]).name, names[i].substr(0, names[i].size() - 1) + "1");
  EXPECT_EQ(kind[1].outputs.size(), 3u);
  EXPECT_TRUE(kind[1].sums.empty() && kind[1].dependent_outputs.empty() &&
              found->broadcast_scalars.empty());
}

TEST(MultiTensor, WhatNeedsTheSumsOfAllComesLater) {
  const auto found = FindMultiTensorGroups(OfOperator("clip_grad_norm", {{3, 5}, {7}}));
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->groups.size(), 1u);
  for (const GroupMember& member : found->groups[0]) {
    EXPECT_EQ(member.sums.size(), 1u);
    EXPECT_EQ(member.outputs.size(), 0u);
    EXPECT_EQ(member.dependent_outputs.size(), 1u);
  }
  EXPECT_EQ(found->broadcast_scalars.size(), 1u);  // the norm, not every tensor's part of it
}

TEST(MultiTensor, AtOnceAndASumBeside) {
  const auto found = FindMultiTensorGroups(OfOperator("unscale", {{3, 5}, {7}}));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->groups[0][1].outputs.size(), 1u);
  EXPECT_EQ(found->groups[0][1].sums.size(), 1u);
  ASSERT_EQ(found->scalar_outputs.size(), 1u);
  EXPECT_EQ(found->scalar_outputs[0].name, "found");
}

TEST(MultiTensor, KindsDifferInTypesAndInWhatIsDone) {
  const auto found = OfLines(
      "input a: float32[4]\ninput b: float32[9]\ninput c: bfloat16[9]\ninput d: float32[2]\n"
      "v = a * 2\nw = b * 2\nx = cast(cast(c, float32) * 2, bfloat16)\ny = d * 3\noutput v\noutput "
      "w\noutput x\noutput "
      "y\n");
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->groups.size(), 3u);
  EXPECT_EQ(found->groups[0].size(), 2u);
}

TEST(MultiTensor, MembersThatMeetLateAreOne) {
  const auto found = OfLines(
      "input a: float32[4]\ninput b: float32[4]\ninput c: float32[9]\ninput d: float32[9]\n"
      "p = b * b\nq = d * d\ns = reduce_sum(p, axes=[0])\nt = reduce_sum(q, axes=[0])\nv = a + "
      "b\nw = c + d\n"
      "output v\noutput w\noutput s\noutput t\n");
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->groups.size(), 1u);
  EXPECT_EQ(found->groups[0][1].sums.size(), 1u);
  EXPECT_EQ(found->groups[0][1].outputs.size(), 1u);
}

TEST(MultiTensor, OtherGraphsAreNot) {
  EXPECT_FALSE(FindMultiTensorGroups(OfOperator("adamw", {{3, 5}})).has_value()) << "one tensor";
  EXPECT_FALSE(FindMultiTensorGroups(OfOperator("softmax", {{3, 5}})).has_value());
  for (const char* lines :
       {"input a: float32[4, 3]\ninput b: float32[3]\ninput c: float32[9]\nv = a * b\nw = c * "
        "2\noutput v\noutput w\n",
        "input a: float32[4]\ninput b: float32[9]\nv = a + cast(index(-1), float32)\nw = b + "
        "cast(index(-1), float32)\n"
        "output v\noutput w\n",
        "input a: float32[4]\ninput b: float32[9]\ns = reduce_sum(a, axes=[0], keep=true)\n"
        "t = reduce_sum(b, axes=[0], keep=true)\np = (a - s) * (a - s)\nq = (b - t) * (b - t)\n"
        "u = reduce_sum(p, axes=[0])\nv = reduce_sum(q, axes=[0])\noutput u\noutput v\n"})
    EXPECT_FALSE(OfLines(lines).has_value()) << lines;
}

}  // namespace
}  // namespace atunner::graph
