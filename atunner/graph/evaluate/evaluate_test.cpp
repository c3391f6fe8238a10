// Every kind of node against loops written out by hand.
#include "atunner/graph/evaluate/evaluate.h"

#include <chrono>
#include <cmath>

#include "atunner/graph/graph_support_test.h"
#include "atunner/graph/scalar_math.h"

namespace atunner::graph {
namespace {

/// A graph of one input x and the given lines; the result is y.
struct Small {
  ValidGraph graph;
  std::vector<Tensor> inputs;
  std::vector<double> x;
  Tensor y;
};
Small Of(const std::string& type, const std::string& lines,
         Precision precision = Precision::kExact) {
  Small small{MustParse("graph g\ninput x: " + type + "\n" + lines + "\noutput y\n"), {}, {}, {}};
  small.inputs = RandomInputs(small.graph, 3);
  small.x = small.inputs[0].Reals();
  small.y = RunGraph(small.graph, small.inputs, precision);
  return small;
}

TEST(Map, BroadcastsAtTheLastAxes) {
  const ValidGraph graph = MustParse(
      "graph g\ninput a: float32[2, 1, 3]\ninput b: float32[4, 1]\ny = a * b + cast(index(-2), "
      "float32)\noutput y\n");
  const auto in = RandomInputs(graph, 1);
  const Tensor y = RunGraph(graph, in);
  ASSERT_EQ(y.shape, (std::vector<int64_t>{2, 4, 3}));
  std::vector<double> want;
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 4; ++j)
      for (size_t k = 0; k < 3; ++k)
        want.push_back(in[0].cells[i * 3 + k].real * in[1].cells[j].real + static_cast<double>(j));
  ExpectNear(y, want);
}

TEST(Map, IntegersWrapAndCastsSaturate) {
  EXPECT_EQ(RunGraph(MustParse("graph g\ninput x: int8[2]\ny = x * x\noutput y\n"),
                     {Tensor::Of(DType::kInt8, {2}, std::vector{100.0, -128.0})})
                .Reals(),
            (std::vector{16.0, 0.0}));
  const Tensor x = Tensor::Of(DType::kFloat32, {4}, std::vector<double>{1e30, -1e30, NAN, -2.9});
  EXPECT_EQ(RunGraph(MustParse("graph g\ninput x: float32[4]\ny = cast(x, int64)\noutput y\n"), {x})
                .Reals(),
            (std::vector{0x1p63, -0x1p63, 0.0, -2.0}));
  const Tensor a = Tensor::Of(DType::kInt32, {4}, std::vector{7.0, -7.0, 7.0, -7.0});
  const Tensor b = Tensor::Of(DType::kInt32, {4}, std::vector{3.0, 3.0, -3.0, 0.0});
  const std::string head = "graph g\ninput a: int32[4]\ninput b: int32[4]\ny = ";
  EXPECT_EQ(RunGraph(MustParse(head + "floor_div(a, b)\noutput y\n"), {a, b}).Reals(),
            (std::vector{2.0, -3.0, -3.0, 0.0}));
  EXPECT_EQ(RunGraph(MustParse(head + "mod(a, b)\noutput y\n"), {a, b}).Reals(),
            (std::vector{1.0, 2.0, -2.0, 0.0}));
}

TEST(Map, DeclaredPrecisionRoundsWhereExactDoesNot) {
  const std::string line = "y = cast(cast(x, float16) * 3, float32)";
  const Small exact = Of("float32[100]", line);
  const Small declared = Of("float32[100]", line, Precision::kDeclared);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(exact.y.cells[i].real, exact.x[i] * 3);
    const double half = Rounded(DType::kFloat16, Real(exact.x[i])).real;
    EXPECT_EQ(declared.y.cells[i].real, static_cast<float>(half) * 3.0f);
  }
  const Small rounded = Of("float32[100]", "y = round_to(x, bfloat16)");
  for (size_t i = 0; i < 100; ++i)
    EXPECT_EQ(rounded.y.cells[i].real, Rounded(DType::kBFloat16, Real(rounded.x[i])).real);
}

/// Beyond the range of 8-bit floats: as PyTorch unless the conversion saturates, as CUDA's does.
TEST(Map, ConversionsSaturateWhereTheySay) {
  const auto run = [](const std::string& conversion) {
    const std::vector<double> x = {447, 464, 465, -1e6, INFINITY, NAN};
    return RunGraph(MustParse("graph g\ninput x: float32[6]\ny = " + conversion + "\noutput y\n"),
                    {Tensor::Of(DType::kFloat32, {6}, x)})
        .Reals();
  };
  const auto is = [](const std::vector<double>& got, const std::vector<double>& want) {
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
          << i << ": " << got[i] << " for " << want[i];
  };
  is(run("round_to(x, float8_e4m3)"), {448, 448, NAN, NAN, NAN, NAN});
  is(run("round_to(x, float8_e4m3, saturate=false)"), {448, 448, NAN, NAN, NAN, NAN});
  is(run("round_to(x, float8_e4m3, saturate=true)"), {448, 448, 448, -448, 448, NAN});
  is(run("round_to(x, float8_e5m2)"), {448, 448, 448, -INFINITY, INFINITY, NAN});
  is(run("round_to(x, float8_e5m2, saturate=true)"), {448, 448, 448, -57344, 57344, NAN});
  is(run("cast(x, float8_e4m3, saturate=true)"), {447, 448, 448, -448, 448, NAN});
}

TEST(Map, PhiloxGivesThePublishedNumbers) {
  // Random123's known-answer tests for philox4x32-10: zero key and counter, and all bits set in key
  // and low counter words are not reachable here, as the high counter words stay 0.
  EXPECT_EQ(PhiloxWord(0, 0), 0x6627e8d5u);
  const Small uniform = Of("float32[1000]", "y: float32[1000] = uniform(7, index(-1))");
  double sum = 0;
  for (Cell cell : uniform.y.cells) {
    EXPECT_GE(cell.real, 0);
    EXPECT_LT(cell.real, 1);
    sum += cell.real;
  }
  EXPECT_NEAR(sum / 1000, 0.5, 0.03);
}

TEST(ScalarMath, AgreesWithIdentities) {
  for (double y : {-0.999999, -0.9, -0.3, 1e-9, 0.1, 0.5, 0.7, 0.99, 1 - 1e-12})
    EXPECT_NEAR(std::erf(Erfinv(y)), y, 1e-15) << y;
  EXPECT_NEAR(Digamma(1), -0.57721566490153286, 1e-13);
  for (double x : {0.1, 0.5, 3.7, 42.0})
    EXPECT_NEAR(Digamma(x + 1), Digamma(x) + 1 / x, 1e-13 * (1 + 1 / x));
  EXPECT_NEAR(Digamma(0.25), Digamma(0.75) - M_PI, 1e-13) << "reflection";
}

TEST(Reduce, AxesInTheMiddle) {
  const Small sum = Of("float32[3, 4, 5]", "y = reduce_sum(x, axes=[1])");
  const Small mean = Of("float32[3, 4, 5]", "y = reduce_mean(x, axes=[0, -1], keep=true)");
  std::vector<double> sums(15, 0.0);
  std::vector<double> means(4, 0.0);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 4; ++j)
      for (size_t k = 0; k < 5; ++k) {
        sums[i * 5 + k] += sum.x[(i * 4 + j) * 5 + k];
        means[j] += mean.x[(i * 4 + j) * 5 + k] / 15;
      }
  ExpectNear(sum.y, sums);
  ExpectNear(mean.y, means);
  EXPECT_EQ(mean.y.shape, (std::vector<int64_t>{1, 4, 1}));
}

TEST(Reduce, ExtremesAndTheirPlacesTakeNaN) {
  const Tensor x = Tensor::Of(DType::kFloat32, {2, 4},
                              std::vector<double>{1.0, 3.0, 3.0, -1.0, 2.0, NAN, 5.0, NAN});
  const auto run = [&](const std::string& op) {
    return RunGraph(MustParse("graph g\ninput x: float32[2, 4]\ny = reduce_" + op +
                              "(x, axes=[1])\noutput y\n"),
                    {x})
        .Reals();
  };
  EXPECT_EQ(run("argmax"), (std::vector{1.0, 1.0}));
  EXPECT_EQ(run("argmin"), (std::vector{3.0, 1.0}));
  EXPECT_EQ(run("max")[0], 3);
  EXPECT_TRUE(std::isnan(run("max")[1]));
  EXPECT_TRUE(std::isnan(run("min")[1]));
  EXPECT_EQ(run("prod")[0], -9);
}

TEST(Reduce, CountsTruths) {
  const Small count = Of("bool[3, 5]", "y = reduce_sum(x, axes=[1])");
  const Small any = Of("bool[3, 5]", "y = reduce_any(x, axes=[1])");
  const Small all = Of("bool[3, 5]", "y = reduce_all(x, axes=[1])");
  for (size_t i = 0; i < 3; ++i) {
    double total = 0;
    for (size_t j = 0; j < 5; ++j) total += count.x[i * 5 + j];
    EXPECT_EQ(count.y.Reals()[i], total);
    EXPECT_EQ(any.y.Reals()[i], total > 0);
    EXPECT_EQ(all.y.Reals()[i], total == 5);
  }
}

TEST(Scan, RunsBothWaysWithAndWithoutItself) {
  for (bool exclusive : {false, true})
    for (bool reverse : {false, true}) {
      const Small run = Of("float64[2, 5, 3]", std::string("y = scan_sum(x, axis=1, exclusive=") +
                                                   (exclusive ? "true" : "false") + ", reverse=" +
                                                   (reverse ? "true" : "false") + ")");
      std::vector<double> want(30);
      for (size_t o = 0; o < 2; ++o)
        for (size_t i = 0; i < 3; ++i)
          for (size_t k = 0; k < 5; ++k) {
            double total = 0;
            for (size_t j = 0; j < 5; ++j) {
              const bool before = reverse ? j > k : j < k;
              if (before || (j == k && !exclusive)) total += run.x[(o * 5 + j) * 3 + i];
            }
            want[(o * 5 + k) * 3 + i] = total;
          }
      ExpectNear(run.y, want);
    }
}

TEST(Contract, BatchesTransposesAndRepeats) {
  const ValidGraph graph = MustParse(
      "graph g\ninput a: float32[5, 2, 3]\ninput b: float32[2, 4, 5]\ny = contract(a, b, "
      "equation=\"kbm,bnk->nbm\")\noutput y\n");
  const auto in = RandomInputs(graph, 9);
  std::vector<double> want(4 * 2 * 3, 0.0);
  for (size_t k = 0; k < 5; ++k)
    for (size_t b = 0; b < 2; ++b)
      for (size_t m = 0; m < 3; ++m)
        for (size_t n = 0; n < 4; ++n)
          want[(n * 2 + b) * 3 + m] += in[0].cells[(k * 2 + b) * 3 + m].real *
                                       in[1].cells[(b * 4 + n) * 5 + k].real;
  ExpectNear(RunGraph(graph, in), want);
  const ValidGraph outer = MustParse(
      "graph g\ninput a: int8[3]\ninput b: int8[2, 4]\ny = contract(a, b, equation=\"i,jk->ji\", "
      "as=int32)\noutput "
      "y\n");
  const auto whole = RandomInputs(outer, 2);
  std::vector<double> products(6, 0.0);
  for (size_t j = 0; j < 2; ++j)
    for (size_t i = 0; i < 3; ++i)
      for (size_t k = 0; k < 4; ++k)
        products[j * 3 + i] += whole[0].Reals()[i] * whole[1].Reals()[j * 4 + k];
  ExpectNear(RunGraph(outer, whole), products, 0);
}

TEST(Contract, SparseOnesLeaveOutWhatIsMasked) {
  for (const bool sparse : {false, true}) {
    const ValidGraph graph = MustParse(
        std::string("graph g\ninput a: float32[1, 2]\ninput b: float32[2, 1]\n") +
        "y = contract(a, b, equation=\"mk,kn->mn\"" + (sparse ? ", sparse=true" : "") +
        ")\noutput y\n");
    auto in = RandomInputs(graph, 3);
    in[0].cells[0].real = 0;
    in[0].cells[1].real = 2;
    in[1].cells[0].real = NAN;
    in[1].cells[1].real = 3;
    const double got = RunGraph(graph, in).Reals()[0];
    EXPECT_EQ(std::isnan(got), !sparse) << got;
    if (sparse) EXPECT_EQ(got, 6);
    in[0].cells[0].real = 1;
    EXPECT_TRUE(std::isnan(RunGraph(graph, in).Reals()[0])) << "what is not masked is not lost";
  }
}

TEST(Window, IsTheOldConvolutionAndFoldItsAdjoint) {
  const Small w = Of("float64[2, 11]", "y = window(x, axis=1, size=3, stride=2, dilation=2)");
  ASSERT_EQ(w.y.shape, (std::vector<int64_t>{2, 4, 3}));
  std::vector<double> want;
  for (size_t o = 0; o < 2; ++o)
    for (size_t p = 0; p < 4; ++p)
      for (size_t r = 0; r < 3; ++r) want.push_back(w.x[o * 11 + p * 2 + r * 2]);
  ExpectNear(w.y, want, 0);
  // <window(x), u> = <x, fold(u)>
  const ValidGraph fold = MustParse(
      "graph g\ninput u: float64[2, 4, 3]\ny = fold(u, axis=1, extent=11, stride=2, "
      "dilation=2)\noutput y\n");
  const auto u = RandomInputs(fold, 8);
  const auto folded = RunGraph(fold, u).Reals();
  double left = 0;
  double right = 0;
  for (size_t i = 0; i < want.size(); ++i) left += want[i] * u[0].cells[i].real;
  for (size_t i = 0; i < folded.size(); ++i) right += w.x[i] * folded[i];
  EXPECT_NEAR(left, right, 1e-12);
}

TEST(Moves, SlicePadReverseTransposeConcat) {
  EXPECT_EQ(Of("int32[2, 6]", "y = slice(x, axis=1, start=1, stop=6, step=2)").y.Reals(), ([&] {
              const auto x = Of("int32[2, 6]", "y = x").x;
              return std::vector{x[1], x[3], x[5], x[7], x[9], x[11]};
            }()));
  const Small pad = Of("float32[3]", "y = pad(x, axis=0, low=1, high=2, inner=1, value=9)");
  EXPECT_EQ(pad.y.Reals(), (std::vector{9.0, pad.x[0], 9.0, pad.x[1], 9.0, pad.x[2], 9.0, 9.0}));
  const Small chain = Of(
      "float32[2, 3]",
      "t = transpose(x, order=[1, 0])\nr = reverse(t, axis=0)\ny = concat(r, t, axis=1)");
  const auto& x = chain.x;
  EXPECT_EQ(chain.y.Reals(),
            (std::vector{x[2], x[5], x[0], x[3], x[1], x[4], x[1], x[4], x[0], x[3], x[2], x[5]}));
  const Small flat = Of("float32[2, 3]",
                        "t = transpose(x, order=[1, 0])\ny = reshape(t, shape=[6])");
  EXPECT_EQ(flat.y.Reals(),
            (std::vector{flat.x[0], flat.x[3], flat.x[1], flat.x[4], flat.x[2], flat.x[5]}));
}

TEST(Gather, TakesSlicesAndAlongAnAxis) {
  const Tensor x = RandomTensor({DType::kFloat32, {2, 4, 3}}, 1);
  const Tensor places = Tensor::Of(DType::kInt64, {2, 2}, std::vector{3.0, 0.0, 1.0, 9.0});
  const std::string head = "graph g\ninput x: float32[2, 4, 3]\ninput i: int64[2, 2]\n";
  const auto at = [&](size_t a, size_t b, size_t c) { return x.cells[(a * 4 + b) * 3 + c].real; };
  std::vector<double> plain;
  std::vector<double> batched;
  const size_t clamped[] = {3, 0, 1, 3};
  for (size_t a = 0; a < 2; ++a)
    for (size_t i = 0; i < 4; ++i)
      for (size_t c = 0; c < 3; ++c) plain.push_back(at(a, clamped[i], c));
  for (size_t a = 0; a < 2; ++a)
    for (size_t i = 0; i < 2; ++i)
      for (size_t c = 0; c < 3; ++c) batched.push_back(at(a, clamped[a * 2 + i], c));
  ExpectNear(RunGraph(MustParse(head + "y = gather(x, i, axis=1)\noutput y\n"), {x, places}), plain,
             0);
  ExpectNear(
      RunGraph(MustParse(head + "y = gather(x, i, axis=1, batch=1)\noutput y\n"), {x, places}),
      batched, 0);
}

TEST(Scatter, AddsInOrderAndDropsWhatIsOutside) {
  const Tensor x = Tensor::Of(DType::kFloat32, {4}, std::vector{1.0, 2.0, 3.0, 4.0});
  const Tensor places = Tensor::Of(DType::kInt32, {5}, std::vector{1.0, 1.0, 3.0, -1.0, 4.0});
  const Tensor updates = Tensor::Of(DType::kFloat32, {5},
                                    std::vector{10.0, 20.0, 30.0, 40.0, 50.0});
  const auto run = [&](const std::string& op) {
    return RunGraph(MustParse("graph g\ninput x: float32[4]\ninput i: int32[5]\ninput u: "
                              "float32[5]\ny = scatter_" +
                              op + "(x, i, u, axis=0)\noutput y\n"),
                    {x, places, updates})
        .Reals();
  };
  EXPECT_EQ(run("sum"), (std::vector{1.0, 32.0, 3.0, 34.0}));
  EXPECT_EQ(run("set"), (std::vector{1.0, 20.0, 3.0, 30.0}));
  EXPECT_EQ(run("max"), (std::vector{1.0, 20.0, 3.0, 30.0}));
  EXPECT_EQ(run("min"), (std::vector{1.0, 2.0, 3.0, 4.0}));
}

TEST(Sort, IsStableAndPutsNaNLast) {
  const Tensor x = Tensor::Of(DType::kFloat32, {6},
                              std::vector<double>{2.0, NAN, 1.0, 2.0, -INFINITY, INFINITY});
  const auto run = [&](const std::string& fields) {
    return RunGraph(MustParse("graph g\ninput x: float32[6]\ny = sort(x, axis=0" + fields +
                              ")\noutput y\n"),
                    {x})
        .Reals();
  };
  EXPECT_EQ(run(""), (std::vector{4.0, 2.0, 0.0, 3.0, 5.0, 1.0}));
  EXPECT_EQ(run(", descending=true, count=4"), (std::vector{1.0, 5.0, 0.0, 3.0}));
}

TEST(Evaluate, RefusesWrongInputsAndOpenSizes) {
  const ValidGraph graph = MustParse(
      "graph g\ndim B = 1..8\ninput x: float32[B]\ny = x\noutput y\n");
  EXPECT_THAT(Evaluate(graph, {}).error().ToString(), testing::HasSubstr("B is open"));
  EXPECT_THAT(Specialise(graph, {{"B", 9}}).error().ToString(), testing::HasSubstr("1..8"));
  const ValidGraph four = Specialise(graph, {{"B", 4}}).value();
  EXPECT_THAT(Evaluate(four, {}).error().ToString(), testing::HasSubstr("1 inputs are needed"));
  const std::vector<Tensor> wrong = {RandomTensor({DType::kFloat32, {3}}, 1)};
  EXPECT_THAT(Evaluate(four, wrong).error().ToString(), testing::HasSubstr("float32[4]"));
}

TEST(Evaluate, SymbolsMayBeCalledOtherwise) {
  const ValidGraph graph = MustParse(
      "graph g\ndim B = 1..8\ninput x: float32[B, 2]\ny = reshape(x, shape=[2*B])\noutput y\n");
  const ValidGraph prefixed = WithSymbolsPrefixed(graph, "size_");
  EXPECT_EQ(prefixed.symbols(), (Symbols{{"size_B", {1, 8}}}));
  EXPECT_EQ(prefixed.node(prefixed.outputs()[0].node).type.ToString(), "float32[2*size_B]");
  const ValidGraph bound = Specialise(prefixed, {{"size_B", 3}}).value();
  const auto inputs = RandomInputs(bound, 1);
  EXPECT_EQ(RunGraph(bound, inputs).Reals(), inputs[0].Reals());
}

TEST(Evaluate, AMillionElementsTakeWellUnderASecond) {
  const ValidGraph graph = MustParse(R"(
graph softmax
input x: float32[1024, 1024]
m = reduce_max(x, axes=[1], keep=true)
e = exp(x - m)
s = reduce_sum(e, axes=[1], keep=true)
y = e / s
output y
)");
  const auto inputs = RandomInputs(graph, 4);
  const auto start = std::chrono::steady_clock::now();
  const Tensor y = RunGraph(graph, inputs);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
                             .count();
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_LT(seconds, 5) << "generous: sanitizers and busy machines";
  double total = 0;
  for (size_t i = 0; i < 1024; ++i) total += y.cells[i].real;
  EXPECT_NEAR(total, 1, 1e-12);
}

}  // namespace
}  // namespace atunner::graph
