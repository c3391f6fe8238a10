// Slices of a graph: each gives its part of the whole's outputs.
#include "atunner/graph/evaluate/slices.h"

#include "atunner/graph/evaluate/evaluate.h"
#include "atunner/graph/graph_support_test.h"
#include "atunner/graph/library/library.h"

namespace atunner::graph {
namespace {

ValidGraph AttentionGradients() {
  Request request{
      DType::kFloat32,
      {{2, 4, 3, 5}, {2, 2, 3, 5}},
      {{"causal", true}, {"window", int64_t{0}}, {"scale", 0.0}, {"wrt", std::string("all")}},
      false};
  return Build(*FindInLibrary("attention_gqa_backward"), request).value();
}

Tensor Numbers(const TensorType& type) {
  std::vector<int64_t> shape;
  for (const Extent& extent : type.shape) shape.push_back(extent.factor());
  std::vector<double> values(static_cast<size_t>(ElementCount(type.shape).factor()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(7 * i + 3));
  return Tensor::Of(type.dtype, shape, values);
}

/// Elements [part * each, (part + 1) * each) of a tensor, in the shape of `type`.
Tensor PartOf(const Tensor& whole, const TensorType& type, int64_t part) {
  const std::vector<double> all = whole.Reals();
  std::vector<int64_t> shape;
  for (const Extent& extent : type.shape) shape.push_back(extent.factor());
  const auto each = ElementCount(type.shape).factor();
  if (each == static_cast<int64_t>(all.size())) part = 0;  // all slices have it whole
  const auto first = all.begin() + each * part;
  return Tensor::Of(type.dtype, shape, {first, first + each});
}

void ExpectPartsOfTheWhole(const ValidGraph& graph, int64_t count) {
  std::vector<Tensor> inputs;
  for (NodeId id : graph.inputs()) inputs.push_back(Numbers(graph.node(id).type));
  const std::vector<Tensor> whole = Evaluate(graph, inputs).value();
  const auto slice = SliceOf(graph, count);
  ASSERT_TRUE(slice.has_value()) << count;
  for (int64_t part = 0; part < count; ++part) {
    std::vector<Tensor> cut;
    for (size_t i = 0; i < inputs.size(); ++i)
      cut.push_back(PartOf(inputs[i], slice->node(slice->inputs()[i]).type, part));
    const std::vector<Tensor> parts = Evaluate(*slice, cut).value();
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::vector<double> all = whole[i].Reals(), some = parts[i].Reals();
      ASSERT_EQ(some.size() * static_cast<size_t>(count), all.size());
      for (size_t e = 0; e < some.size(); ++e)
        EXPECT_EQ(some[e], all[some.size() * static_cast<size_t>(part) + e]);
    }
  }
}

TEST(Slices, EachGivesItsPartOfTheWhole) {
  for (const int64_t count : {2, 4})  // sequences; key heads, each with two query heads
    ExpectPartsOfTheWhole(AttentionGradients(), count);
}

TEST(Slices, ImagesOfABatchShareTheFilters) {
  const auto of = [](const char* name, std::vector<std::vector<int64_t>> shapes,
                     Attributes attributes) {
    const Request request{DType::kFloat32, std::move(shapes), std::move(attributes), false};
    return Build(*FindInLibrary(name), request).value();
  };
  const Attributes strided = {{"stride", int64_t{2}}, {"padding", int64_t{1}}};
  // As many filters as images: cut too, they would be wrong.
  ExpectPartsOfTheWhole(of("conv", {{3, 2, 5, 4}, {3, 2, 3, 3}}, strided), 3);
  ExpectPartsOfTheWhole(of("conv_transpose", {{3, 2, 4, 3}, {2, 3, 3, 3}}, strided), 3);
  const Attributes grouped = {{"groups", int64_t{4}}, {"padding", int64_t{1}}};
  const ValidGraph depthwise = of("conv", {{2, 4, 5, 3}, {4, 1, 3, 3}}, grouped);
  ExpectPartsOfTheWhole(depthwise, 2);
  EXPECT_FALSE(SliceOf(depthwise, 8)) << "channels of one image have different filters";
  ExpectPartsOfTheWhole(
      of("avg_pool", {{2, 3, 5, 6}}, {{"size", int64_t{3}}, {"padding", int64_t{1}}}), 6);
}

TEST(Slices, CountsComeFromLeadingAxes) {
  EXPECT_THAT(SliceCounts(AttentionGradients()), testing::ElementsAre(2, 4, 8, 12, 24));
}

TEST(Slices, PartsThatMeetAreNotTakenApart) {
  EXPECT_FALSE(SliceOf(AttentionGradients(), 8)) << "query heads share keys";
  const auto sliced = [](const std::string& lines) {
    return SliceOf(MustParse("graph g\ninput x: float32[4, 6]\n" + lines + "\noutput y\n"), 4)
        .has_value();
  };
  EXPECT_TRUE(sliced("y = reduce_sum(x, axes=[1])"));
  EXPECT_FALSE(sliced("y = reduce_sum(x, axes=[0])"));
  EXPECT_FALSE(sliced("t = transpose(x, order=[1, 0])\ny = t * 2"));
  EXPECT_TRUE(sliced("y = x * cast(index(-1), float32)"));
  EXPECT_FALSE(sliced("y = x * cast(index(-2), float32)"));
  EXPECT_FALSE(sliced("y = contract(x, x, equation=\"ik,jk->ij\")"));
  EXPECT_FALSE(sliced("y = reverse(x, axis=0)"));
  EXPECT_TRUE(sliced("y = reverse(x, axis=1)"));
  EXPECT_TRUE(sliced("y = scan_sum(x, axis=1)"));
  EXPECT_FALSE(sliced("y = scan_sum(x, axis=0)"));
  EXPECT_FALSE(sliced("y = pad(x, axis=0, low=4, high=0, inner=0, value=0)"));
  EXPECT_FALSE(sliced("y = concat(x, x, axis=0)"));
  EXPECT_TRUE(sliced("y = concat(x, x, axis=1)"));
}

}  // namespace
}  // namespace atunner::graph
