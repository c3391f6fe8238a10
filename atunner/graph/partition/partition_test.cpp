// Parts of a graph compute, one after the other, what the graph does, and are divided where it
// serves.
#include "atunner/graph/partition/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "atunner/graph/graph_support_test.h"
#include "atunner/graph/rewrite/rewrite.h"

namespace atunner::graph {
namespace {

size_t Reductions(const ValidGraph& graph) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.nodes(), [](const Node& n) { return n.As<Reduce>(); }));
}
/// Elements read and written, and some for a launch; nothing computes two reductions at once, or a
/// product of what is no input.
std::optional<double> CostOf(const ValidGraph& graph, double) {
  for (const Node& node : graph.nodes()) {
    const auto is_input = [&](NodeId operand) {
      return graph.node(operand).As<Input>() != nullptr;
    };
    if (node.As<Contract>() &&
        (Reductions(graph) > 0 || !std::ranges::all_of(node.operands, is_input)))
      return std::nullopt;
  }
  if (Reductions(graph) > 1) return std::nullopt;
  double elements = 10;
  const auto add = [&](NodeId id) {
    elements += static_cast<double>(ElementCount(graph.node(id).type.shape).factor());
  };
  for (NodeId input : graph.inputs()) add(input);
  for (const Output& output : graph.outputs()) add(output.node);
  return elements;
}

/// Part after part, each with what the inputs and the parts before it gave.
std::vector<Tensor> RunParts(const ValidGraph& whole, const std::vector<ValidGraph>& parts) {
  std::map<std::string, Tensor> known;
  const auto inputs = RandomInputs(whole, 5);
  for (size_t i = 0; i < inputs.size(); ++i) known[whole.node(whole.inputs()[i]).name] = inputs[i];
  for (const ValidGraph& part : parts) {
    std::vector<Tensor> given;
    for (NodeId input : part.inputs()) given.push_back(known.at(part.node(input).name));
    const auto made = Evaluate(part, given).value();
    for (size_t i = 0; i < made.size(); ++i) known[part.outputs()[i].name] = made[i];
  }
  std::vector<Tensor> outputs;
  for (const Output& output : whole.outputs()) outputs.push_back(known.at(output.name));
  return outputs;
}

std::vector<ValidGraph> GraphsOf(const std::vector<Part>& parts) {
  std::vector<ValidGraph> graphs;
  for (const Part& part : parts) graphs.push_back(part.graph);
  return graphs;
}

std::vector<ValidGraph> Parts(const std::string& text) {
  const ValidGraph whole = MustParse(text);
  // As codegen does: an expression that one node uses becomes part of it.
  const auto divided = Partition(FuseMaps(whole), {}, CostOf);
  EXPECT_TRUE(divided.has_value());
  if (!divided) return {};
  const std::vector<ValidGraph> parts = GraphsOf(*divided);
  const auto want = Evaluate(whole, RandomInputs(whole, 5)).value();
  const auto got = RunParts(whole, parts);
  for (size_t i = 0; i < want.size(); ++i) ExpectNear(got[i], want[i].Reals());
  return parts;
}

std::vector<std::string> Names(const ValidGraph& graph) {
  std::vector<std::string> names;
  for (NodeId input : graph.inputs()) names.push_back(graph.node(input).name);
  for (const Output& output : graph.outputs()) names.push_back("-> " + output.name);
  return names;
}

TEST(Partition, LeavesWholeWhatIsComputedAtOnce) {
  const auto parts = Parts(
      "graph g\ninput x: float32[4, 5]\ns = reduce_sum(x, axes=[1])\ny = exp(s)\noutput y\n");
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_THAT(Names(parts[0]), testing::ElementsAre("x", "-> y"));
}

TEST(Partition, LeavesExpressionsToWhoTakesThem) {
  const auto parts = Parts(R"(
graph g
input x: float32[4, 5]
input w: float32[5]
e = exp(x)
s = reduce_sum(e, axes=[1], keep=true)
q = x / s * w
t = reduce_max(q, axes=[0], keep=true)
y = x - t
output y
)");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(Names(parts[0])[0], "x");
  EXPECT_EQ(parts[1].outputs()[0].name, "y");
  EXPECT_EQ(parts[1].inputs().size(), 3u) << "x, the sums, w";
}

// A value that only the second subgraph needs is computed there, wherever the text defines it.
TEST(Partition, ComputesNothingBeforeItIsNeeded) {
  const auto parts = Parts(R"(
graph g
input x: float32[4, 5]
input z: float32[4, 5]
late = exp(z)
s = reduce_sum(x, axes=[0, 1], keep=true)
product = late * s
y = reduce_sum(product, axes=[1])
output y
)");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(Names(parts[0]), testing::ElementsAre("x", testing::StartsWith("-> kept")));
}

TEST(Partition, KeepsAnOutputOnceAndByItsName) {
  const auto parts = Parts(R"(
graph g
input x: float32[4, 5]
s = reduce_sum(x, axes=[1], keep=true)
square = s * s
y = reduce_sum(square, axes=[0])
output sums = s
output y
output again = s
)");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(Names(parts[0]), testing::ElementsAre("x", "-> sums", "-> again"));
  EXPECT_THAT(Names(parts[1]), testing::ElementsAre("sums", "-> y"));
}

TEST(Partition, ComputesSmallValuesOfInputsAgain) {
  const auto parts = Parts(R"(
graph g
input x: float32[4, 5]
input w: float32[5]
root = sqrt(abs(w))
a = x * root
s = reduce_sum(a, axes=[1], keep=true)
b = (x - s) * root
y = reduce_sum(b, axes=[0])
output y
)");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].outputs().size(), 1u) << "the sums alone";
}

/// A sum, a product of it, and a sum of the product.
constexpr const char* kSumsAndProduct = R"(
graph g
input x: float16[4, 8]
input w: float16[8, 8]
s = reduce_sum(x, axes=[1], keep=true)
narrow = s * x
p = contract(narrow, w, equation="mk,nk->mn")
t = reduce_sum(p, axes=[0], keep=true)
y = t * s
output y
)";

std::vector<DType> KeptTypes(KeptProducts products) {
  std::vector<DType> kept;
  for (const Part& part :
       Partition(FuseMaps(MustParse(kSumsAndProduct)), {}, CostOf, products).value()) {
    for (const Output& output : part.graph.outputs())
      kept.push_back(part.graph.node(output.node).type.dtype);
  }
  return kept;
}

// A sum in 16 bits goes on in 32; what is multiplied stays as products take it.
TEST(Partition, KeepsWhatArithmeticKnows) {
  EXPECT_THAT(
      KeptTypes(KeptProducts::kWide),
      testing::ElementsAre(DType::kFloat32, DType::kFloat16, DType::kFloat32, DType::kFloat16));
}

TEST(Partition, KeepsProductsInTheirOwnTypeWhereAsked) {
  EXPECT_THAT(
      KeptTypes(KeptProducts::kOwnType),
      testing::ElementsAre(DType::kFloat32, DType::kFloat16, DType::kFloat16, DType::kFloat16));
}

/// A sum of what is small and one of what is large, of which either may come first.
constexpr const char* kSmallAndLarge = R"(
graph g
input x: float32[8, 400]
input labels: float32[8]
l = exp(labels)
n = reduce_sum(l, axes=[0], keep=true)
e = exp(x)
s = reduce_sum(e, axes=[1])
row = l / s / n
column = reshape(row, shape=[8, 1])
y = e * column
output y
)";

TEST(Partition, SaysSmallValuesBeforeItReadsLargeOnes) {
  const auto parts = Parts(kSmallAndLarge);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(Names(parts[0]), testing::ElementsAre("labels", testing::StartsWith("-> kept")));
  EXPECT_THAT(Names(parts[1]),
              testing::UnorderedElementsAre("labels", "x", testing::StartsWith("kept"), "-> y"));
}

// Another order must be clearly cheaper, so that tuned subgraphs stay the same.
TEST(Partition, LeavesTheUsualOrderOnlyForOneThatCostsClearlyLess) {
  const ValidGraph graph = FuseMaps(MustParse(kSmallAndLarge));
  // The more every part costs by itself, the less one order gains on another.
  const auto first_inputs = [&](double of_part) {
    const auto parts = Partition(
        graph, {}, [&](const ValidGraph& part, double most) -> std::optional<double> {
          const auto own = CostOf(part, most);
          return own ? std::optional(*own + of_part * static_cast<double>(Reductions(part)))
                     : std::nullopt;
        });
    return Names(parts->front().graph);
  };
  EXPECT_THAT(first_inputs(0), testing::ElementsAre("labels", testing::StartsWith("-> kept")));
  EXPECT_THAT(first_inputs(1e6), testing::Contains("x"));
}

TEST(Partition, AsksForACostOnce) {
  std::map<std::string, double> told;
  const auto parts = Partition(FuseMaps(MustParse(kSmallAndLarge)), {},
                               [&](const ValidGraph& part, double most) {
                                 const auto cost = CostOf(part, most);
                                 if (cost)
                                   EXPECT_TRUE(told.emplace(Print(part), *cost).second)
                                       << "in another manner of dividing: " << Print(part);
                                 return cost;
                               });
  EXPECT_TRUE(parts.has_value());
  EXPECT_GT(told.size(), 1u);
}

// Layers that differ in names alone cost the same.
TEST(Partition, AsksForTheCostOfARepeatedLayerOnce) {
  const auto asked = [](int layers) {
    std::string text = "graph g\ninput x0: float32[8, 400]\n";
    for (int i = 0; i < layers; ++i)
      text += fmt::format(
          "s{0} = reduce_sum(x{0}, axes=[1], keep=true)\ne{0} = exp(x{0})\nx{1} = e{0} / s{0}\n", i,
          i + 1);
    text += fmt::format("output x{}\n", layers);
    int count = 0;
    const auto parts = Partition(FuseMaps(MustParse(text)), {},
                                 [&](const ValidGraph& part, double most) {
                                   ++count;
                                   return CostOf(part, most);
                                 });
    EXPECT_TRUE(parts.has_value());
    return count;
  };
  EXPECT_LE(asked(80), asked(40) * 1.2);
}

TEST(Partition, WritesConstantsThatAreMultiplied) {
  const auto parts = Parts(R"(
graph g
input x: float32[4, 2]
w: float32[2, 2] = constant(1, 2, 3, 4)
y = contract(x, w, equation="mk,kn->mn")
output y
)");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_TRUE(parts[0].inputs().empty()) << "products take what is in memory";
}

TEST(Partition, PutsOffSmallValuesThatTheEndAloneNeeds) {
  // In a part with the total, whose sum is as small.
  const auto text = R"(
graph g
input x: float32[8, 400]
input labels: float32[8]
e = exp(x)
s = reduce_sum(e, axes=[1])
v = s * labels
total = reduce_sum(v, axes=[0])
l = exp(labels)
n = reduce_sum(l, axes=[0])
y = total / n
output y
)";
  const auto parts = Partition(FuseMaps(MustParse(text)), {}, [](const ValidGraph& part, double) {
    const bool sums_rows = std::ranges::any_of(part.nodes(), [](const Node& node) {
      const auto* reduce = node.As<Reduce>();
      return reduce != nullptr && reduce->axes == std::vector<int64_t>{1};
    });
    return sums_rows && Reductions(part) > 1 ? std::nullopt : std::optional(1.0);
  });
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(parts->size(), 2u);
}

TEST(Partition, KeepsWhatIsAnotherShapeOnceAndAsItWas) {
  const auto parts = Parts(R"(
graph g
input x: float32[6, 5]
s = reduce_sum(x, axes=[1])
column = reshape(s, shape=[6, 1])
m = reduce_max(s, axes=[0], keep=true)
y = x * column / m
output y
)");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].outputs().size(), 1u);
  EXPECT_EQ(parts[0].node(parts[0].outputs()[0].node).type.shape.size(), 1u);
}

TEST(Partition, RefusesWhatNoPartComputes) {
  const ValidGraph sum = MustParse(
      "graph g\ninput x: float32[4]\ny = reduce_sum(x, axes=[0])\noutput y\n");
  EXPECT_FALSE(Partition(sum, {}, [](const ValidGraph& part, double) {
    return Reductions(part) == 0 ? std::optional(1.0) : std::nullopt;
  }));
}

TEST(Partition, LeavesOpenSizesOpenWhereAPartHasThem) {
  const ValidGraph open = MustParse(R"(
graph g
dim B = 1..8
input x: float32[B, 4]
input w: float32[4, 4]
s = reduce_sum(w, axes=[0])
t = reduce_sum(x, axes=[1], keep=true)
y = t * s
output y
)");
  const auto parts = Partition(open, {{"B", 6}}, [](const ValidGraph& part, double) {
    return part.nodes().size() == part.inputs().size() + 1 ? std::optional(1.0) : std::nullopt;
  });
  ASSERT_TRUE(parts.has_value());
  std::vector<size_t> symbols;
  for (const Part& part : *parts)
    symbols.push_back(WithCanonicalNames(part.graph).symbols().size());
  EXPECT_THAT(symbols, testing::UnorderedElementsAre(0u, 1u, 1u));
}

// A reduction may be large only because of a symbol.
TEST(Partition, CountsWhatOpenSizesAre) {
  const ValidGraph sum = MustParse(R"(
graph g
dim B = 1..65536
input x: float32[B, 4]
input b: float32[64]
s = reduce_sum(x, axes=[0, 1])
y = s + b
output y
)");
  EXPECT_TRUE(HasSmallReduction(sum, {{"B", 1}}));
  EXPECT_FALSE(HasSmallReduction(sum, {{"B", 65536}}));
}

}  // namespace
}  // namespace atunner::graph
