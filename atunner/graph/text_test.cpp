// The text form: what it says, what it refuses, and that writing and reading are inverse.
#include "atunner/graph/text.h"

#include <fmt/format.h>

#include <regex>

#include "atunner/base/files.h"
#include "atunner/base/mutation_test.h"
#include "atunner/graph/expression_text.h"
#include "atunner/graph/graph_support_test.h"
#include "atunner/graph/text_fuzz.h"

namespace atunner::graph {
namespace {

using testing::HasSubstr;

constexpr const char* kRmsNorm = R"(
# x / sqrt(mean(x²) + eps) · weight
graph rms_norm
dim B = 1..65536
input x: bfloat16[B, 64]
input weight: bfloat16[64]
wide = cast(x, float32)
square = wide * wide
mean = reduce_mean(square, axes=[-1], keep=true)
y = cast(wide * rsqrt(mean + 1e-5) * cast(weight, float32), bfloat16)
output y
)";

/// One of every kind of node.
constexpr const char* kEverything = R"(
graph everything
dim B = 2..16
input x: float32[B, 8, 12]
input places: int64[3]
c: float32[12] = constant(0, 1.5, -2, inf, -inf, nan, 1e-300, 0.1, 7, 8, 9, 10)
half: float16[] = constant(0.5)
m = let t = exp(x - c) in select(t > 1 & ~isnan(x), t / (1 + t), -t ** 0.5)
s = reduce_sum(m, axes=[0, 2])
best = reduce_argmax(x, axes=[1], keep=true)
positive = x > 0
any = reduce_any(positive, axes=[0, 1, 2])
run = scan_prod(x, axis=-1, exclusive=true, reverse=true)
product = contract(x, run, equation="bij,bkj->bik", as=float64)
w = window(x, axis=2, size=3, stride=2, dilation=2)
f = fold(w, axis=2, extent=12, stride=2, dilation=2)
r = reshape(x, shape=[8*B, 12])
t = transpose(r, order=[1, 0])
part = slice(x, axis=1, start=1, stop=7, step=2)
padded = pad(part, axis=-1, low=1, high=2, inner=1, value=-1.5)
both = concat(x, f, axis=2)
back = reverse(both, axis=1)
picked = gather(x, places, axis=1)
added = scatter_sum(x, places, picked, axis=1)
order = sort(x, axis=1, descending=true, count=2)
noise: float32[B, 8, 12] = uniform(42, index(-1) + 12 * index(-2) + 96 * index(-3))
rounded = round_to(x, float8_e4m3) + cast(extent(-1), float32) + cast(half, float32)
output s
output b = best
output any
output product
output t
output padded
output back
output added
output order
output noise
output rounded
)";

/// A conversion that saturates is printed as the clamp that it is.
TEST(Text, ReadsConversionsThatSaturate) {
  const ValidGraph graph = MustParse(
      "graph g\ninput x: float32[4]\ny = cast(x, float8_e4m3, saturate=true)\noutput y\n");
  const std::string printed = Print(graph);
  EXPECT_THAT(printed, HasSubstr("cast(minimum(maximum(x, (-448)), 448), float8_e4m3)"));
  EXPECT_EQ(Print(MustParse(printed)), printed);
  const auto error = [](const std::string& conversion) {
    const auto parsed = Parse("graph g\ninput x: float32[4]\ny = " + conversion + "\noutput y\n",
                              "test.atg");
    return parsed ? std::string() : parsed.error().ToString();
  };
  EXPECT_THAT(error("cast(x, int8, saturate=true)"), HasSubstr("only floats saturate"));
  EXPECT_THAT(error("cast(x, float16, clamp=true)"), HasSubstr("expected 'saturate'"));
  EXPECT_THAT(error("cast(x, float16, saturate=1)"), HasSubstr("expected true or false"));
}

TEST(Text, AnnotatesTypesWithSymbols) {
  const std::string printed = Print(MustParse(kRmsNorm));
  EXPECT_THAT(printed, HasSubstr("input x: bfloat16[B, 64]\n"));
  EXPECT_THAT(printed,
              HasSubstr("mean: float32[B, 1] = reduce_mean(square, axes=[1], keep=true)\n"));
  EXPECT_THAT(printed, HasSubstr("y: bfloat16[B, 64] = cast(wide * rsqrt(mean + 1e-05) * "
                                 "cast(weight, float32), bfloat16)\n"));
}

TEST(Text, PrintingAndParsingAreInverse) {
  for (const char* text : {kRmsNorm, kEverything}) {
    const std::string once = Print(MustParse(text));
    EXPECT_EQ(Print(MustParse(once)), once);
  }
}

TEST(Text, EqualGraphsHaveEqualDigests) {
  for (const char* text : {kRmsNorm, kEverything}) {
    const ValidGraph graph = MustParse(text);
    EXPECT_EQ(MustParse(Print(graph)).ContentDigest(), MustParse(Print(graph)).ContentDigest());
  }
  const std::string text =
      "graph g\ndim B = 1..8\ninput x: float32[B, 4]\n"
      "s = reduce_sum(x, axes=[1])\ny = s + 1\noutput y\n";
  const Digest digest = MustParse(text).ContentDigest();
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"graph g", "graph h"},
                                                        {"1..8", "1..9"},
                                                        {"float32", "float64"},
                                                        {"reduce_sum", "reduce_max"},
                                                        {"axes=[1]", "axes=[1], keep=true"},
                                                        {"s + 1", "s + 2"},
                                                        {"s + 1", "s - 1"},
                                                        {"output y", "output z = y"}}) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    EXPECT_NE(MustParse(other).ContentDigest(), digest) << other;
  }
}

TEST(Text, WhatIsPrintedMeansTheSame) {
  const ValidGraph graph = Specialise(MustParse(kEverything), {{"B", 3}}).value();
  const ValidGraph again = MustParse(Print(graph));
  auto inputs = RandomInputs(graph, 5);
  const auto a = Evaluate(graph, inputs).value();
  const auto b = Evaluate(again, inputs).value();
  ASSERT_EQ(a.size(), 11u);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].shape, b[i].shape);
    ExpectNear(a[i], b[i].Reals(), 0);
  }
}

TEST(Text, DocumentationNamesEveryFunction) {
  const std::string page = ReadFile(Path(ATUNNER_SOURCE_DIR) / "docs" / "graph.md").value();
  for (int i = 0; i < static_cast<int>(ScalarOp::kParameter); ++i) {
    const std::string name(InfoOf(static_cast<ScalarOp>(i)).name);
    if (FindScalarFunction(name) && name != "negate")  // written -x
      EXPECT_TRUE(std::regex_search(page, std::regex("[` \\n]" + name + "[` (\\n]"))) << name;
  }
}

TEST(Text, ErrorsSayWhereAndWhatToDo) {
  const auto with = [](const std::string& line) {
    return ErrorOf("graph g\ninput x: float32[4, 6]\ninput n: int32[6]\n" + line + "\noutput x\n");
  };
  EXPECT_THAT(with("y = exq(x)"),
              HasSubstr("test.atg:4:5: unknown function 'exq'\n  hint: did you mean 'exp'?"));
  EXPECT_THAT(
      with("y = x + n"),
      HasSubstr("test.atg:4:7: operands of types float32 and int32\n  hint: cast(x, float32)"));
  EXPECT_THAT(with("y = x + z"), HasSubstr("4:9: unknown value 'z'"));
  EXPECT_THAT(
      with("y = reduce_sum(x, axes=[2])"),
      HasSubstr("4:1: reduce_sum: axis 2 of a tensor of rank 2\n  hint: axes go from 0 to 1"));
  EXPECT_THAT(with("y = reduce_sum(x)"), HasSubstr("reduce_sum needs axes"));
  EXPECT_THAT(with("y = reduce_sum(x, axis=[1])"), HasSubstr("did you mean 'axes'?"));
  EXPECT_THAT(with("y: float32[4] = x * 2"),
              HasSubstr("4:1: operands of shape [4, 6] do not broadcast to [4]"));
  EXPECT_THAT(with("y: float16[4, 6] = x * 2"),
              HasSubstr("stated to be float16[4, 6] and is float32[4, 6]"));
  EXPECT_THAT(with("x = n"), HasSubstr("4:1: 'x' is defined twice"));
  EXPECT_THAT(with("y = (x + 1"), HasSubstr("expected ')'"));
  EXPECT_THAT(with("y = n * 0.5"), HasSubstr("0.5"));
  EXPECT_THAT(with("y = n / 2"), HasSubstr("floor_div divides integers"));
  EXPECT_THAT(with("y = 1 + reduce_sum(x, axes=[0])"), HasSubstr("a line of its own"));
  EXPECT_THAT(with("y = reduce_sum(x, axes=[0]) + 1"),
              HasSubstr("4:5: 'reduce_sum' inside of an expression"));
  EXPECT_THAT(with("y = reduce_sum(x * x, axes=[0])"),
              HasSubstr("4:16: an operand of reduce_sum that is no name"));
  EXPECT_THAT(with("y = reduce_sum(abs(x), axes=[0])"), HasSubstr("a line of its own"));
  EXPECT_THAT(with("y = max(x, 0)"), HasSubstr("did you mean 'maximum'?"));
  EXPECT_THAT(with("y = index(-2)"), HasSubstr("gives an expression its shape"));
  EXPECT_THAT(with("y = contract(x, x, equation=\"ij,kl->il\") extra"),
              HasSubstr("end of the line"));
  EXPECT_THAT(with("y = contract(x, x, equation=\"ij,jk->ik\")"), HasSubstr("axis 'j' is 6 and 4"));
  EXPECT_THAT(with("y = index(0)"), HasSubstr("index(-1) is the last"));
  EXPECT_THAT(with("y: float32[9] = constant(1, 2)"), HasSubstr("2 values"));
  EXPECT_THAT(with("y: float32[q] = constant(1)"), HasSubstr("dim q = 1..4096"));
  EXPECT_THAT(with("y: float33[4] = constant(1)"), HasSubstr("types are float64"));
  EXPECT_THAT(ErrorOf("graph g\ninput x: float32[1048576, 1048576]\noutput x"), HasSubstr("2^40"));
  EXPECT_THAT(ErrorOf("graph g\ninput x: float32[2]"), HasSubstr("output y"));
  EXPECT_THAT(ErrorOf("graph g\ndim and = 1..4\n"), HasSubstr("no name for a size"));
  EXPECT_THAT(ErrorOf("what"), HasSubstr("test.atg:1:1: expected 'graph NAME', found 'what'"));
  EXPECT_THAT(ErrorOf("graph g\ndim B = 4..2\n"), HasSubstr("at least 1"));
  EXPECT_THAT(ErrorOf("graph g\ninput x: float32[2]\ny = " + std::string(5000, '(')),
              HasSubstr("deep"));
}

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Text, LongExpressionsAreRefused) {
  const std::string head = "graph g\ninput x: float32[2]\ny = x";
  EXPECT_THAT(ErrorOf(head + Repeated(" + x", 30000)),
              HasSubstr("test.atg:3:5: an expression of 30000 operations one after the other; at "
                        "most 1000 are allowed"));
  std::string lets = "graph g\ninput x: float32[2]\ny = let t0 = x";
  for (int i = 1; i < 3000; ++i) lets += fmt::format(", t{} = exp(t{})", i, i - 1);
  EXPECT_THAT(ErrorOf(lets + " in t2999"), HasSubstr("at most 1000 are allowed"));
}

TEST(Text, DeepExpressionsRoundTrip) {
  const std::string head = "graph g\ninput x: float32[2]\ny = ";
  FuzzText(head + "x" + Repeated(" + x", 1000) + "\noutput y\n");
  std::string lets = "let t0 = x";
  for (int i = 1; i < 1000; ++i) lets += fmt::format(", t{} = 1 - exp(t{})", i, i - 1);
  FuzzText(head + lets + " in t499\noutput y\n");
}

TEST(Text, DamagedTextsAreRefusedOrRoundTrip) {
  Random random(11);
  for (int i = 0; i < 4000; ++i) FuzzText(Mutated(i % 2 ? kEverything : kRmsNorm, random));
}

std::string Reprinted(const std::string& text) {
  const std::vector<std::string> names = {"a", "b"};
  auto parsed = ParseExpression(text, {DType::kFloat32, DType::kFloat32});
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().ToString());
  return PrintExpression(parsed.value(), names);
}

TEST(Expression, PrintsWithAsFewParenthesesAsMeaningAllows) {
  for (const char* text :
       {"a + b * a", "(a + b) * a", "a - (b - a)", "a - b - a", "-(a + b)", "-a * b", "a / (b / a)",
        "a * (-0.5)", "select(a < b, a, 0)", "select(a < b & b < 1 | isnan(a), a, b)",
        "pow(a, 2.5)", "cast(index(-1), float32) + a", "let t0 = a + b in t0 * exp(t0)",
        "1 / (1 + exp(-a)) + b"})
    EXPECT_EQ(Reprinted(text), text);
}

TEST(Expression, FoldsWhatIsKnownAndKeepsEveryBit) {
  EXPECT_EQ(Reprinted("a * 1 + b / 1"), "a + b");
  EXPECT_EQ(Reprinted("a + 2 * 3 ** 2"), "a + 18");
  EXPECT_EQ(Reprinted("a ** 2"), "a * a");
  EXPECT_EQ(Reprinted("--a * -1"), "-a");
  EXPECT_EQ(Reprinted("select(1 < 2, a, b)"), "a");
  EXPECT_EQ(Reprinted("a + 0"), "a + 0") << "-0 + 0 is 0";
  EXPECT_EQ(Reprinted("a * 0"), "a * 0") << "NaN stays";
}

}  // namespace
}  // namespace atunner::graph
