// Rewrites keep the meaning and do what they promise.
#include "atunner/graph/rewrite/rewrite.h"

#include <fmt/format.h>

#include <algorithm>

#include "atunner/graph/graph_support_test.h"
#include "atunner/graph/rewrite/split_reductions.h"

namespace atunner::graph {
namespace {

using testing::HasSubstr;
using testing::Not;

void ExpectSameMeaning(const ValidGraph& a, const ValidGraph& b) {
  const auto inputs = RandomInputs(a, 17);
  const auto want = Evaluate(a, inputs).value();
  const auto got = Evaluate(b, inputs).value();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) ExpectNear(got[i], want[i].Reals(), 0);
}

size_t Count(const ValidGraph& graph, size_t index) {
  return static_cast<size_t>(std::ranges::count_if(
      graph.nodes(), [&](const Node& n) { return n.operation.index() == index; }));
}
const size_t kMap = Operation(Map{}).index();

TEST(Rewrite, LongChainsOfMapsAreFusedToExpressionsThatCanBeRead) {
  std::string lines = "graph g\ninput x0: float32[2]\n";
  for (int i = 1; i <= 1500; ++i) lines += fmt::format("x{} = exp(x{})\n", i, i - 1);
  const ValidGraph fused = FuseMaps(MustParse(lines + "output y = x1500\n"));
  EXPECT_EQ(Count(fused, kMap), 2u);
  EXPECT_TRUE(Parse(Print(fused)).has_value());
}

TEST(Simplify, RemovesWhatIsNotNeededAndMakesEqualNodesOne) {
  const ValidGraph graph = MustParse(
      "graph g\ninput x: float32[4]\ninput unused: float32[2]\ndead = x * 5\na = exp(x) + 1\nb = "
      "exp(x) + 1\ny = a * "
      "b\noutput y\n");
  const ValidGraph simple = Simplify(graph);
  EXPECT_EQ(Count(simple, kMap), 2u) << Print(simple);
  EXPECT_EQ(simple.inputs().size(), 2u);
  ExpectSameMeaning(graph, simple);
}

TEST(Simplify, ComputesWhatIsKnown) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: float32[2, 3]
two: float32[] = 2
row: float32[3] = constant(1, 2, 3)
s = reduce_sum(row, axes=[0])
y = x * two ** 2 + s
output y
)");
  const ValidGraph simple = Simplify(graph);
  EXPECT_THAT(Print(simple), HasSubstr("y: float32[2, 3] = x * 4 + 6\n"));
  EXPECT_THAT(Print(simple), Not(HasSubstr("constant")));
  ExpectSameMeaning(graph, simple);
}

TEST(Simplify, ReductionsLeaveAxesOfOneElement) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: float32[1, 6, 4]
m = reduce_mean(x, axes=[0, 2], keep=true)
n = reduce_sum(x, axes=[0], keep=true)
y = x - m + n
output y
)");
  const ValidGraph simple = Simplify(graph);
  EXPECT_THAT(Print(simple), HasSubstr("reduce_mean(x, axes=[2], keep=true)"));
  EXPECT_THAT(Print(simple), HasSubstr("reduce_sum(x, axes=[0], keep=true)"));
  ExpectSameMeaning(graph, simple);
}

TEST(Simplify, ExpressionsSayShortTables) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: float32[4, 3, 2, 5]
input n: int32[2, 5]
mean: float32[3, 1, 1] = constant(0.5, 0.25, 0.125)
corners: float32[2, 2, 1] = constant(1, 2, 3, 4)
c = x - mean
t = reduce_sum(c, axes=[1], keep=true)
b: bool[5] = constant(1, 0, 0, 1, 1)
y = select(b, t * corners, cast(n, float32))
output y
)");
  const ValidGraph simple = Simplify(graph);
  EXPECT_THAT(Print(simple), Not(HasSubstr("constant")));
  ExpectSameMeaning(graph, simple);
}

TEST(Simplify, UndoesMovesThatCancel) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: float32[2, 3, 4]
a = transpose(x, order=[2, 0, 1])
b = transpose(a, order=[1, 2, 0])
c = reshape(b, shape=[6, 4])
d = reshape(c, shape=[2, 3, 4])
e = reverse(d, axis=1)
f = reverse(e, axis=1)
g = slice(f, axis=0, stop=2)
y = pad(g, axis=0)
output y
)");
  const ValidGraph simple = Simplify(graph);
  EXPECT_EQ(simple.nodes().size(), 1u) << Print(simple);
  EXPECT_EQ(simple.outputs()[0].node, simple.inputs()[0]);
}

TEST(Fuse, ChainsOfMapsBecomeOne) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: float32[4, 6]
input b: float32[6]
t = x + b
u = t * cast(index(-1), float32)
v = exp(u)
y = v / (1 + v)
output y
)");
  const ValidGraph fused = FuseMaps(graph);
  EXPECT_EQ(Count(fused, kMap), 1u) << Print(fused);
  ExpectSameMeaning(graph, fused);
}

TEST(Fuse, LeavesWhatMakesAValueNarrowerWhereThatIsAskedFor) {
  const ValidGraph graph = MustParse(R"(
graph g
input a: bfloat16[4, 6]
input b: bfloat16[5, 6]
s = contract(a, b, equation="mk,nk->mn", as=float32)
kept = cast(s * 2, bfloat16)
y = cast(kept, float32) * 0.125 + 1
output y
)");
  EXPECT_EQ(Count(FuseMaps(graph), kMap), 1u);
  const ValidGraph fused = FuseMaps(graph, /*through_roundings=*/false);
  EXPECT_THAT(Print(fused), HasSubstr("kept: bfloat16[4, 5] = cast(s * 2, bfloat16)\n"));
  ExpectSameMeaning(graph, fused);
}

TEST(Fuse, DoesNotRepeatWorkAcrossABroadcastOrForTwoUsers) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: float32[4, 6]
m = reduce_mean(x, axes=[1], keep=true)
scale = 1 / sqrt(m * m + 1)
y = x * scale
shared = exp(x)
z = shared * 2
w = reduce_sum(shared, axes=[0])
output y
output z
output w
)");
  const ValidGraph fused = FuseMaps(graph);
  EXPECT_THAT(Print(fused), HasSubstr("y: float32[4, 6] = x * scale\n"));
  EXPECT_THAT(Print(fused), HasSubstr("z: float32[4, 6] = shared * 2\n"));
  ExpectSameMeaning(graph, fused);
}

TEST(Fuse, PlacesOfAStretchedAxisDoNotMove) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: float32[4, 6]
place: float32[4, 1] = cast(index(-1) + extent(-1) * 10 + index(-2), float32)
y = x * 0 + place
output y
)");
  const ValidGraph fused = FuseMaps(graph);
  EXPECT_EQ(Count(fused, kMap), 2u) << "arithmetic is not free";
  const ValidGraph free = MustParse(
      "graph g\ninput x: float32[4, 6]\np: int64[4, 1] = index(-1)\nq: int64[4, 1] = extent(-1)\ny "
      "= x + cast(p, "
      "float32) + cast(q, float32)\noutput y\n");
  EXPECT_EQ(Count(FuseMaps(free), kMap), 1u);
  ExpectSameMeaning(graph, fused);
  ExpectSameMeaning(free, FuseMaps(free));
}

TEST(Fuse, KeepsSymbols) {
  const ValidGraph graph = MustParse(
      "graph g\ndim B = 1..9\ninput x: float32[B, 6]\nt = x + cast(extent(-2), float32)\ny = t * "
      "t\noutput y\n");
  const ValidGraph fused = FuseMaps(graph);
  EXPECT_EQ(Count(fused, kMap), 1u);
  ExpectSameMeaning(Specialise(graph, {{"B", 5}}).value(), Specialise(fused, {{"B", 5}}).value());
}

TEST(MergeAxes, OneAxisWhereNothingTellsTwoApart) {
  const ValidGraph norm = MustParse(R"(
graph g
input x: float32[4, 6, 8, 10]
m = reduce_mean(x, axes=[0, 2, 3], keep=true)
squares = x * x
s = reduce_sum(squares, axes=[0, 2, 3])
input weight: float32[6]
twice = weight * 2
w = reshape(twice, shape=[6, 1, 1])
y = (x - m) * w
output y
output s
)");
  const ValidGraph merged = MergeAxes(norm);
  EXPECT_THAT(Print(merged), HasSubstr("input x: float32[4, 6, 80]"));
  EXPECT_THAT(Print(merged), HasSubstr("input weight: float32[6]\n"));
  auto inputs = RandomInputs(norm, 17);
  const auto want = Evaluate(norm, inputs).value();
  inputs[0] = Tensor::Of(DType::kFloat32, {4, 6, 80}, inputs[0].Reals());
  const auto got = Evaluate(merged, inputs).value();
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_THAT(got[i].Reals(), testing::Pointwise(testing::DoubleNear(1e-9), want[i].Reals()));

  for (const char* apart :
       {"y = x * cast(index(-1), float32)\ns = reduce_sum(y, axes=[1, 2])\n",
        "s = reduce_sum(x, axes=[0, 2])\ny = x * 2\n",
        "input w: float32[5]\ny = x * w\ns = reduce_sum(y, axes=[1, 2])\n",
        "wide = pad(x, axis=2, low=1, high=1)\ny = x + 1\ns = reduce_sum(wide, axes=[1, 2])\n",
        "y = transpose(x, order=[0, 2, 1])\ns = reduce_sum(x, axes=[1, 2])\n"}) {
    const ValidGraph graph = MustParse("graph g\ninput x: float32[3, 4, 5]\n" + std::string(apart) +
                                       "output y\noutput s\n");
    EXPECT_EQ(Print(MergeAxes(graph)), Print(graph));
  }
}

std::string MergedInput(const std::string& lines) {
  const std::string head = "graph g\ndim B = 1..9\ninput x: float32[B, 3, 4, 5]\n";
  const ValidGraph merged = MergeAxes(MustParse(head + lines + "output y\n"));
  return ToString(merged.node(merged.inputs()[0]).type.shape);
}

TEST(MergeAxes, MergesAroundTheAxisThatANodeChanges) {
  EXPECT_EQ(MergedInput("y = x + 1\n"), "[60*B]");
  EXPECT_EQ(MergedInput("y = pad(x, axis=3, low=1, high=1)\n"), "[12*B, 5]");
  EXPECT_EQ(MergedInput("y = concat(x, x, axis=1)\n"), "[B, 3, 20]");
  EXPECT_EQ(MergedInput("y = scan_sum(x, axis=2)\n"), "[3*B, 4, 5]");
  EXPECT_EQ(MergedInput("w = window(x, axis=2, size=2)\ny = reduce_max(w, axes=[3])\n"),
            "[3*B, 4, 5]");
  EXPECT_EQ(MergedInput("y = transpose(x, order=[2, 3, 0, 1])\n"), "[3*B, 20]");
  EXPECT_EQ(MergedInput("y = reduce_sum(x, axes=[3, 1, 2])\n"), "[B, 60]");
  EXPECT_EQ(MergedInput("y = reduce_sum(x, axes=[2, 3], keep=true)\n"), "[3*B, 20]");
  EXPECT_EQ(MergedInput("input w: float32[3, 1, 1]\ny = x * w\n"), "[B, 3, 20]");
  EXPECT_EQ(MergedInput("y = reshape(x, shape=[B, 12, 5])\n"), "[60*B]");
  EXPECT_EQ(MergedInput("z = reshape(x, shape=[B, 12, 5])\ny = reverse(z, axis=2)\n"), "[12*B, 5]");
  EXPECT_EQ(MergedInput("input i: int64[2, 7]\ny = gather(x, i, axis=1)\n"), "[B, 3, 20]");
  // Another input of that shape, whose axes a node of its own tells apart.
  EXPECT_EQ(
      MergedInput(
          "input z: float32[B, 3, 4, 5]\nt = reverse(z, axis=1)\nw = t + 1\ny = x * 2\noutput w\n"),
      "[B, 3, 20]");
  // Nothing is left to merge around the axes; a transpose tells all axes apart.
  EXPECT_EQ(MergedInput("a = reverse(x, axis=1)\ny = reverse(a, axis=2)\n"), "[B, 3, 4, 5]");
  EXPECT_EQ(MergedInput("y = transpose(x, order=[0, 2, 1, 3])\n"), "[B, 3, 4, 5]");
  EXPECT_EQ(MergedInput("y = x + cast(index(-1), float32)\n"), "[B, 3, 4, 5]");
}

TEST(MergeAxes, KeepsWhatIsComputed) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: float32[3, 1, 4, 5]
input w: float32[4, 1]
input i: int64[2, 3]
input u: float32[2, 3, 1, 4, 5]
y = x * w
g = gather(x, i, axis=0)
m = reduce_mean(y, axes=[1, 3, 2], keep=true)
t = transpose(x, order=[2, 3, 1, 0])
z = y - m
p = scatter_sum(x, i, u, axis=0)
output g
output t
output z
output p
)");
  auto inputs = RandomInputs(graph, 5);
  const auto want = Evaluate(graph, inputs).value();
  const ValidGraph merged = MergeAxes(graph);
  EXPECT_THAT(Print(merged), HasSubstr("input i: int64[6]"));
  EXPECT_THAT(Print(merged), HasSubstr("input u: float32[6, "));
  for (size_t k = 0; k < inputs.size(); ++k) {
    const TensorType& type = merged.node(merged.inputs()[k]).type;
    inputs[k].shape.clear();
    for (const Extent& extent : type.shape) inputs[k].shape.push_back(extent.factor());
  }
  const auto got = Evaluate(merged, inputs).value();
  for (size_t k = 0; k < want.size(); ++k)
    EXPECT_THAT(got[k].Reals(), testing::Pointwise(testing::DoubleNear(1e-12), want[k].Reals()));
}

TEST(WithoutArgReductions, TheFirstPlaceOfAnExtremeAndOfNaN) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: float32[4, 5]
input n: int32[5, 3]
a = reduce_argmax(x, axes=[1])
b = reduce_argmin(x, axes=[0], keep=true)
c = reduce_argmin(n, axes=[0])
computed = x * 3
d = reduce_argmax(computed, axes=[1])
output a
output b
output c
output d
)");
  const ValidGraph without = WithoutArgReductions(graph);
  EXPECT_THAT(Print(without), Not(HasSubstr("argmin")));
  EXPECT_THAT(Print(without), HasSubstr("argmax(computed"))
      << "two reductions might round it differently";
  const Tensor x = Tensor::Of(DType::kFloat32, {4, 5},
                              std::vector<double>{1,    3, 3, -1, 2,  //
                                                  5,    5, 5, 5,  5,  //
                                                  -0.0, 0, 7, 7,  NAN, NAN, -4, 0, -4, NAN});
  const Tensor n = Tensor::Of(
      DType::kInt32, {5, 3},
      std::vector<double>{4, 0, -7, 4, 0, 2, -3, 0, -7, -3, 9, -9, 0, -1, 0});
  const std::vector<Tensor> inputs = {x, n};
  const auto want = Evaluate(graph, inputs).value();
  const auto got = Evaluate(without, inputs).value();
  for (size_t i = 0; i < want.size(); ++i) ExpectNear(got[i], want[i].Reals(), 0);
}

TEST(WithConstantIndexTables, WhatEachPlaceTakesIsATable) {
  const std::string places[] = {"minimum(floor_div(index(-1), 2), 2)", "5 - index(-1)",
                                "index(-1) - 2", "index(-1) * 0 + 1"};
  for (const std::string& place : places) {
    const ValidGraph graph = MustParse(
        "graph g\ninput x: float32[2, 4, 3]\ninput u: float32[2, 6, 3]\ni: int64[6] = " + place +
        "\ny = scatter_sum(x, i, u, axis=1)\noutput y\n");
    const ValidGraph known = WithConstantIndexTables(graph);
    EXPECT_THAT(Print(known), Not(HasSubstr("scatter"))) << place;
    ExpectSameMeaning(graph, known);
  }
  const ValidGraph given = MustParse(
      "graph g\ninput x: float32[4]\ninput i: int64[6]\ninput u: float32[6]\ny = scatter_sum(x, i, "
      "u, axis=0)\n"
      "output y\n");
  EXPECT_EQ(Print(WithConstantIndexTables(given)), Print(given));
  for (const char* op : {"set", "max", "min"}) {  // the table's updates are added up
    const ValidGraph other = MustParse(
        "graph g\ninput x: float32[2, 4]\ninput u: float32[6, 4]\ni: int64[6] = "
        "minimum(floor_div(index(-1), 3), 1)\n"
        "y = scatter_" +
        std::string(op) + "(x, i, u, axis=0)\noutput y\n");
    ExpectSameMeaning(other, WithConstantIndexTables(other));
  }
}

TEST(WithSplitSorts, TheFirstOfRowsAreAmongTheFirstOfTheirParts) {
  for (const std::string& order : std::vector<std::string>{"", ", descending=true"}) {
    // Few values, so that most elements are equal to others.
    const ValidGraph graph = MustParse(
        "graph g\ninput x: float32[2, 16384]\nr = floor(x)\ns = sort(r, axis=1, count=5" + order +
        ")\nv = gather(x, s, axis=1, batch=1)\noutput s\noutput v\n");
    ASSERT_TRUE(HasLongSorts(graph));
    const ValidGraph divided = WithSplitSorts(graph);
    EXPECT_FALSE(HasLongSorts(divided));
    ExpectSameMeaning(graph, divided);
  }
  const ValidGraph across = MustParse(
      "graph g\ninput x: float32[4, 2, 3]\ns = sort(x, axis=0, count=3)\noutput s\n");
  EXPECT_THAT(Print(WithSplitSorts(across)), HasSubstr("axis=2"));
  ExpectSameMeaning(across, WithSplitSorts(across));
  const auto sorts = [](const char* shape, const char* count) {
    return HasLongSorts(MustParse(std::string("graph g\ninput x: float32[") + shape +
                                  "]\ns = sort(x, axis=1, count=" + count + ")\noutput s\n"));
  };
  EXPECT_FALSE(sorts("2, 16384", "0")) << "all of a row";
  EXPECT_FALSE(sorts("2, 16384", "200")) << "a part would have few more than are wanted";
  EXPECT_FALSE(sorts("4096, 16384", "5")) << "rows enough for all";
}

TEST(WithoutVectorProducts, AreSumsOfProducts) {
  const auto graph_of = [](const char* a, const char* b, const char* equation) {
    return MustParse(std::string("graph g\ninput a: bfloat16[") + a + "]\ninput b: bfloat16[" + b +
                     "]\ny = contract(a, b, equation=\"" + equation + "\")\noutput y\n");
  };
  const struct {
    const char *a, *b, *equation;
    std::vector<int64_t> shapes[2];
  } thin[] = {{"3, 4", "4", "mk,k->m", {{3, 4}, {4}}},
              {"3", "3, 4", "k,kn->n", {{3}, {3, 4}}},
              {"2, 3, 4", "2, 4", "bmk,bk->bm", {{2, 3, 4}, {2, 4}}},
              {"3", "4", "m,n->mn", {{3}, {4}}}};
  for (const auto& [a, b, equation, shapes] : thin) {
    const ValidGraph graph = graph_of(a, b, equation);
    const ValidGraph without = WithoutVectorProducts(graph);
    EXPECT_THAT(Print(without), Not(HasSubstr("contract")));
    std::vector<Tensor> inputs;
    for (const auto& shape : shapes) {
      std::vector<double> values;
      const int64_t count = ElementCount(Shape(shape.begin(), shape.end())).factor();
      for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i * i % 7) - 2);
      inputs.push_back(Tensor::Of(DType::kBFloat16, shape, values));
    }
    ExpectNear(Evaluate(without, inputs).value()[0], Evaluate(graph, inputs).value()[0].Reals(), 0);
  }
  for (const ValidGraph& thick :
       {graph_of("3, 4", "4, 5", "mk,kn->mn"), graph_of("3, 4", "4", "mk,k->m")})
    EXPECT_EQ(Print(WithoutVectorProducts(thick)) == Print(thick),
              thick.node(thick.inputs()[1]).type.rank() == 2);
}

TEST(WithCanonicalMatmuls, WhatOneOperandAloneHasIsAddedUpBefore) {
  for (const char* equation : {"mka,kn->mn", "mk,akn->nm", "mka,bk->m", "ma,b->m", "a,b->"}) {
    const std::string text(equation);
    const auto axes = [](size_t rank) { return rank == 1 ? "3" : rank == 2 ? "3, 3" : "3, 3, 3"; };
    const size_t comma = text.find(','), arrow = text.find("->");
    const ValidGraph graph = MustParse(
        std::string("graph g\ninput a: float32[") + axes(comma) + "]\ninput b: float32[" +
        axes(arrow - comma - 1) + "]\ny = contract(a, b, equation=\"" + text + "\")\noutput y\n");
    const ValidGraph made = WithCanonicalMatmuls(graph);
    EXPECT_THAT(Print(made), HasSubstr("reduce_sum"));
    const auto inputs = RandomInputs(graph, 17);
    ExpectNear(RunGraph(made, inputs), RunGraph(graph, inputs).Reals());
  }
}

TEST(WithoutSingleElementScatters, AnElementIsUpdatedWhereItsPlaceIsTheOne) {
  for (const char* op : {"sum", "set", "max", "min"}) {
    const ValidGraph graph = MustParse(
        std::string("graph g\ninput x: float32[3, 4]\ninput p: int64[3]\ninput u: float32[3]\n") +
        "y = scatter_" + op + "(x, p, u, axis=1, batch=1)\noutput y\n");
    const ValidGraph without = WithoutSingleElementScatters(graph);
    EXPECT_THAT(Print(without), Not(HasSubstr("scatter")));
    const std::vector<Tensor> inputs = {
        Tensor::Of(DType::kFloat32, {3, 4},
                   std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, NAN, 10, 11, 12}),
        Tensor::Of(DType::kInt64, {3}, std::vector<double>{3, -1, 0}),
        Tensor::Of(DType::kFloat32, {3}, std::vector<double>{2.5, 9, 4})};
    ExpectNear(Evaluate(without, inputs).value()[0], Evaluate(graph, inputs).value()[0].Reals(), 0);
  }
  const ValidGraph several = MustParse(
      "graph g\ninput x: float32[3, 4]\ninput p: int64[3, 2]\ninput u: float32[3, 2]\n"
      "y = scatter_sum(x, p, u, axis=1, batch=1)\noutput y\n");
  EXPECT_EQ(Print(WithoutSingleElementScatters(several)), Print(several));
}

TEST(WithReducedAxesKept, TellsRowsFromColumnsOfTheSameExtent) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: float32[5, 5]
input labels: int64[5]
input weight: float32[5]
weighted = x * weight
total = reduce_sum(weighted, axes=[1])
picked = gather(x, labels, axis=1, batch=1)
y = select(labels != 2, total - picked, cast(index(-1), float32))
output y
)");
  const ValidGraph kept = WithReducedAxesKept(graph);
  EXPECT_EQ(kept.node(kept.inputs()[1]).type.shape, (Shape{Extent(5), Extent(1)}));
  EXPECT_EQ(kept.node(kept.inputs()[2]).type.shape, (Shape{Extent(5)}));
  const auto inputs = RandomInputs(graph, 17);
  std::vector<Tensor> same = inputs;
  same[1] = Tensor::Of(DType::kInt64, {5, 1}, inputs[1].Reals());
  const auto got = Evaluate(kept, same);
  ASSERT_TRUE(got.has_value()) << got.error().ToString() << Print(kept);
  ExpectNear((*got)[0], Evaluate(graph, inputs).value()[0].Reals(), 0);
  const ValidGraph both = MustParse(
      "graph g\ninput x: float32[5, 5]\nrow = reduce_sum(x, axes=[1])\ny = x * row\noutput y\n");
  EXPECT_EQ(Print(WithReducedAxesKept(both)), Print(both))
      << "a row's value that stands for columns";
}

// A number for each row that is no input and no reduction of the rows.
TEST(WithReducedAxesKept, TakesRowsFromElsewhere) {
  const ValidGraph graph = MustParse(R"(
graph g
input x: float32[6, 5]
input turned: float32[1, 6]
input long: float32[8]
input other: float32[3, 6]
total = reduce_sum(x, axes=[1])
flat = reshape(turned, shape=[6])
part = slice(long, axis=0, start=1, stop=7)
top = reduce_max(other, axes=[0])
y = total * flat + part - top
output y
)");
  const auto inputs = RandomInputs(graph, 17);
  const auto got = Evaluate(WithReducedAxesKept(graph), inputs);
  ASSERT_TRUE(got.has_value()) << got.error().ToString();
  ExpectNear((*got)[0], Evaluate(graph, inputs).value()[0].Reals(), 0);
}

ValidGraph Product(const std::string& equation, const std::string& a, const std::string& b) {
  return MustParse("graph g\ninput a: float32" + a + "\ninput b: float32" + b +
                   "\ny = contract(a, b, equation=\"" + equation + "\")\noutput y\n");
}
const size_t kTranspose = Operation(Transpose{}).index();

TEST(WithCanonicalMatmuls, TransposesWhatLiesOtherwise) {
  const auto transposes = [](const ValidGraph& graph) {
    const ValidGraph made = WithCanonicalMatmuls(graph);
    ExpectSameMeaning(graph, made);
    return Count(made, kTranspose);
  };
  EXPECT_EQ(transposes(Product("mk,nk->mn", "[3, 4]", "[5, 4]")), 0u);
  EXPECT_EQ(transposes(Product("bmk,bkn->bmn", "[2, 3, 4]", "[2, 4, 5]")), 0u);
  EXPECT_EQ(transposes(Product("nk,mk->mn", "[3, 4]", "[5, 4]")), 0u)
      << "the second with the first";
  EXPECT_EQ(transposes(Product("mak,nk->amn", "[3, 1, 4]", "[5, 4]")), 0u)
      << "one element lies anywhere";
  EXPECT_EQ(transposes(Product("km,kn->mn", "[4, 3]", "[4, 5]")), 1u);
  EXPECT_EQ(transposes(Product("kn,km->mn", "[4, 3]", "[4, 5]")), 1u) << "operands change places";
  EXPECT_EQ(transposes(Product("abmk,bnk->abmn", "[2, 3, 4, 5]", "[3, 6, 5]")), 2u)
      << "each has an axis of its own";
  EXPECT_EQ(transposes(Product("mjki,jink->nmj", "[2, 3, 4, 5]", "[3, 5, 6, 4]")), 3u);
  EXPECT_EQ(transposes(Product("mkz,n->mn", "[3, 4, 2]", "[5]")), 0u) << "no product of matrices";
  EXPECT_EQ(transposes(Product("km,kn->nm", "[1, 4]", "[1, 5]")), 0u) << "no depth";
  EXPECT_EQ(transposes(Product("ab,nb->an", "[1, 9]", "[1, 9]")), 0u) << "a number";
  EXPECT_EQ(transposes(Product("abcd,nc->nadb", "[3, 7, 1, 1]", "[5, 1]")), 0u);
}

TEST(WithSplitReductions, ManyBlocksShareLongSums) {
  const size_t reduce = Operation(Reduce{}).index();
  const auto split = [&](const std::string& shape, const std::string& call) {
    const ValidGraph graph = MustParse("graph g\ninput x: float64" + shape + "\ny = " + call +
                                       "\noutput y\n");
    const ValidGraph made = WithSplitReductions(graph);
    const auto inputs = RandomInputs(graph, 17);
    ExpectNear(RunGraph(made, inputs), RunGraph(graph, inputs).Reals(), 1e-9);
    return Count(made, reduce);
  };
  EXPECT_EQ(split("[1024, 1024]", "reduce_sum(x, axes=[0, 1])"), 2u);
  EXPECT_EQ(split("[1024, 1024]", "reduce_mean(x, axes=[0, 1], keep=true)"), 2u);
  EXPECT_EQ(split("[2, 1048576]", "reduce_max(x, axes=[1])"), 2u) << "parts of the only axis";
  EXPECT_EQ(split("[1048576, 2]", "reduce_sum(x, axes=[0])"), 2u);
  EXPECT_EQ(split("[8, 3, 65536, 2]", "reduce_min(x, axes=[0, 2], keep=true)"), 1u)
      << "too few terms of each";
  EXPECT_EQ(split("[1024, 1024]", "reduce_sum(x, axes=[1])"), 1u) << "many results";
  EXPECT_EQ(split("[1048583]", "reduce_sum(x, axes=[0])"), 1u) << "a prime number of terms";
}

}  // namespace
}  // namespace atunner::graph
