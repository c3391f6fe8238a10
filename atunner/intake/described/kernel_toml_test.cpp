#include "atunner/intake/described/kernel_toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "atunner/model/kernel/exact_fill.h"
#include "atunner/search/space/space_index.h"

namespace atunner {
namespace {

using testing::HasSubstr;

constexpr const char* kSaxpy = R"toml(
name = "saxpy"
source = "saxpy.cu"
options = ["-use_fast_math"]
constraints = ["block * items <= 2048"]
flops = "2 * n"
check = [{ n = 1000 }]

[sizes]
n = 16777216

[parameters]
block = [64, 128, 256]
items = "[2**i for i in range(4)]"

[default]
block = 128

[[argument]]
name = "a"
type = "float"
value = 2.5

[[argument]]
name = "x"
type = "float32"
shape = "n"
fill = "uniform -1 1"

[[argument]]
name = "y"
type = "float32"
shape = ["n"]
role = "inout"

[[launch]]
kernel = "saxpy<{items}>"
grid = "ceil_div(n, block * items)"
block = "block"
arguments = ["a", "x", "y", "n: int32"]

[tolerance]
relative = 1e-6
)toml";

const FileReader kAnyFile = [](const std::string&) {
  return Result<std::string>("template <int I> __global__ void saxpy() {}");
};

std::string Without(std::string text, const std::string& piece, const std::string& instead = "") {
  const size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return text.replace(at, piece.size(), instead);
}

std::string ErrorOf(const std::string& text) {
  auto kernel = ParseKernelToml(text, "kernel.toml", kAnyFile);
  if (!kernel) return kernel.error().ToString();
  auto made = MakeUserTemplate(*kernel);
  return made ? "" : made.error().ToString();
}

/// Adds parameters to [parameters], after the two that the file has.
ParameterSpace SpaceOf(const std::string& parameters) {
  auto kernel = ParseKernelToml(Without(kSaxpy, "items =", parameters + "\nitems ="), "kernel.toml",
                                kAnyFile);
  EXPECT_TRUE(kernel) << kernel.error().ToString();
  return kernel ? kernel->space : ParameterSpace();
}

std::string ValuesOf(const std::string& parameter) {
  const ParameterSpace space = SpaceOf(parameter);
  const int at = space.Find("p");
  if (at < 0) return "none";
  std::string shown;
  for (const Value& value : space.parameters[static_cast<size_t>(at)].values)
    shown += (shown.empty() ? "" : " ") + ToString(value);
  return shown;
}

TEST(KernelToml, StatesRangesFlagsTextsAndPermutations) {
  EXPECT_EQ(ValuesOf("p = { from = 0.1, to = 10, count = 5, spacing = 'log' }"),
            "0.1 0.316227766017 1.0 3.16227766017 10.0");
  EXPECT_EQ(ValuesOf("p = { from = 0.1, to = 0.3, step = 0.1 }"), "0.1 0.2 0.3");
  EXPECT_EQ(ValuesOf("p = { from = 32, to = 128, step = 32 }"), "32 64 96 128");
  EXPECT_EQ(ValuesOf("p = { from = 0, to = 1, count = 3 }"), "0.0 0.5 1.0");
  EXPECT_EQ(ValuesOf("p = [false, true]"), "false true");
  EXPECT_EQ(ValuesOf("p = { values = ['global', 'shared'], meaning = 'where tiles lie' }"),
            "global shared");
  EXPECT_EQ(ValuesOf("p = { permutation = [0, 1, 2] }"), "0,1,2 0,2,1 1,0,2 1,2,0 2,0,1 2,1,0");
}

TEST(KernelToml, AConditionalParameterHasOneValueWhereItMeansNothing) {
  auto kernel = ParseKernelToml(Without(kSaxpy, "items =", R"(
mode = ["plain", "staged"]
stages = { values = [2, 3, 4], if = "mode == 'staged'", otherwise = 1 }
pad = { values = [0, 4], if = "mode == 'staged'" }
items =)"),
                                "kernel.toml", kAnyFile);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  const auto index = SpaceIndex::Build(kernel->space, kernel->spec.dims);
  ASSERT_TRUE(index) << index.error().ToString();
  std::set<std::string> seen;
  for (uint64_t at = 0; at < index->size(); ++at) {
    const Configuration one = index->At(at);
    const auto value = [&](const char* name) { return ToString(Get(kernel->space, one, name)); };
    seen.insert(value("mode") + " " + value("stages") + " " + value("pad"));
  }
  EXPECT_THAT(seen,
              testing::UnorderedElementsAre("plain 1 0", "staged 2 0", "staged 2 4", "staged 3 0",
                                            "staged 3 4", "staged 4 0", "staged 4 4"));
}

TEST(KernelToml, SaysWhatIsWrongWithAParameter) {
  const auto error = [](const std::string& parameter) {
    return ErrorOf(Without(kSaxpy, "items =", parameter + "\nitems ="));
  };
  EXPECT_THAT(error("p = { from = 0, to = 10, count = 5, spacing = 'log' }"),
              HasSubstr("positive"));
  EXPECT_THAT(error("p = { from = 0, to = 10 }"), HasSubstr("'step' or 'count'"));
  EXPECT_THAT(error("p = { values = [1], permutation = [1, 2] }"),
              HasSubstr("state 'values', a range"));
  EXPECT_THAT(error("p = { permutation = ['a', 'a'] }"), HasSubstr("twice"));
  EXPECT_THAT(error("p = [32, '128', 256.5]"), HasSubstr("\"128\" stands among numbers"));
  EXPECT_THAT(error("p = { values = [1, 2], if = 'q > 1' }"), HasSubstr("unknown name 'q'"));
  EXPECT_THAT(error("p = { values = [1, 2], if = 'block >' }"), HasSubstr("'if'"));
  EXPECT_THAT(error("p = { values = [1, 2], otherwise = 1 }"), HasSubstr("without 'if'"));
  EXPECT_THAT(error("p = { valeus = [1, 2] }"), HasSubstr("did you mean 'values'"));
  EXPECT_THAT(error("p_1 = [1, 2]\np = { permutation = [1, 2] }"), HasSubstr("defines 'p_1'"));
}

TEST(KernelToml, APermutationArrivesWholeAndPieceByPiece) {
  auto kernel = ParseKernelToml(
      Without(kSaxpy, "items =", "axes = { permutation = [0, 1, 2] }\nitems ="), "kernel.toml",
      kAnyFile);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  const auto schedule = MakeUserTemplate(*kernel);
  ASSERT_TRUE(schedule) << schedule.error().ToString();
  Configuration one = (*schedule)->Default();
  one.values[static_cast<size_t>((*schedule)->space().Find("axes"))] = std::string("2,0,1");
  const auto rendered = (*schedule)->Render(one);
  ASSERT_TRUE(rendered);
  using Define = std::pair<std::string, std::string>;
  for (const Define& define : {Define{"axes", "2,0,1"}, Define{"axes_0", "2"},
                               Define{"axes_1", "0"}, Define{"axes_2", "1"}})
    EXPECT_EQ(std::ranges::count(rendered->source.defines, define), 1) << define.first;
}

TEST(KernelToml, ReadsAWholeDescription) {
  auto kernel = ParseKernelToml(kSaxpy, "kernel.toml", kAnyFile);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  EXPECT_EQ(kernel->spec.args.size(), 3u);
  EXPECT_EQ(kernel->spec.args[1].fill.kind, Fill::Kind::kUniform);
  EXPECT_EQ(kernel->spec.args[2].role, Role::kInOut);
  EXPECT_EQ(kernel->spec.tolerance.relative, 1e-6);
  ASSERT_EQ(kernel->check_dims.size(), 1u);
  EXPECT_EQ(kernel->check_dims[0].at("n"), 1000);
  auto schedule = MakeUserTemplate(*kernel);
  ASSERT_TRUE(schedule) << schedule.error().ToString();
  EXPECT_EQ((*schedule)->space().Describe((*schedule)->Default()), "block=128, items=1");
  const auto rendered = (*schedule)->Render({{int64_t{256}, int64_t{4}}});
  ASSERT_TRUE(rendered);
  EXPECT_EQ(rendered->plan.steps[0].entry, "saxpy<4>");
  const auto plan = Resolve(rendered->plan, (*schedule)->spec().dims, {});
  ASSERT_TRUE(plan) << plan.error().ToString();
  EXPECT_EQ(plan->steps[0].grid.x, 16384u);
  EXPECT_EQ(plan->steps[0].args.size(), 4u);
}

TEST(KernelToml, ExactFillsAreStatedByAWord) {
  const auto exact = [](const char* fill) {
    const auto kernel = ParseKernelToml(Without(kSaxpy, "uniform -1 1", fill), "kernel.toml",
                                        kAnyFile);
    EXPECT_TRUE(kernel) << fill;
    return kernel && IsExact(kernel->spec.args[1].fill);
  };
  for (const char* fill : {"exact zeros", "exact iota", "exact constant 3"})
    EXPECT_TRUE(exact(fill)) << fill;
  for (const char* fill : {"zeros", "iota", "constant 3", "normal"})
    EXPECT_FALSE(exact(fill)) << fill;
}

TEST(KernelToml, TolerancesAreFiniteNumbers) {
  for (const char* value : {"inf", "nan", "-inf", "-1e-6", "'much'"}) {
    EXPECT_THAT(ErrorOf(Without(kSaxpy, "relative = 1e-6", std::string("relative = ") + value)),
                HasSubstr("'relative' must be a finite number of at least 0"))
        << value;
    EXPECT_THAT(ErrorOf(Without(kSaxpy, "relative = 1e-6", std::string("absolute = ") + value)),
                HasSubstr("'absolute' must be a finite number of at least 0"))
        << value;
  }
  EXPECT_EQ(ErrorOf(Without(kSaxpy, "relative = 1e-6", "relative = 0")), "");
}

TEST(KernelToml, MistakesNameLineAndRemedy) {
  const std::string good = kSaxpy;
  ASSERT_EQ(ErrorOf(good), "");
  EXPECT_THAT(ErrorOf(Without(good, "options", "optoins")),
              HasSubstr("kernel.toml:4: unknown key 'optoins'"));
  EXPECT_THAT(ErrorOf(Without(good, "options", "optoins")), HasSubstr("did you mean 'options'"));
  EXPECT_THAT(ErrorOf(Without(good, "float32\"\nshape = \"n\"", "floaty\"\nshape = \"n\"")),
              HasSubstr("unknown type 'floaty'"));
  EXPECT_THAT(ErrorOf(Without(good, "role = \"inout\"")), HasSubstr("no output"));
  EXPECT_THAT(ErrorOf(Without(good, "block = 128", "block = 100")),
              HasSubstr("none of the values"));
  EXPECT_THAT(ErrorOf(Without(good, "[64, 128, 256]", "[]")), HasSubstr("no values"));
  EXPECT_THAT(ErrorOf(Without(good, "\"a\", \"x\"", "\"a\", \"xx\"")),
              HasSubstr("did you mean 'x'"));
  EXPECT_THAT(ErrorOf(Without(good, "block * items <= 2048", "block * itms <= 2048")),
              HasSubstr("itms"));
  EXPECT_THAT(ErrorOf(Without(good, "block * items <= 2048", "block * items <= 2")),
              HasSubstr("block * items <= 2"));
  EXPECT_THAT(ErrorOf(Without(good, "n = 1000 }", "m = 1000 }")),
              HasSubstr("'m' is not among [sizes]"));
  for (const char* fill : {"exact uniform -1 1", "exact", "exact exact zeros"})
    EXPECT_THAT(ErrorOf(Without(good, "uniform -1 1", fill)), HasSubstr("can be exact")) << fill;
  EXPECT_THAT(ErrorOf(Without(good, "uniform -1 1", "gauss")), HasSubstr("unknown fill 'gauss'"));
  EXPECT_EQ(ErrorOf(Without(good, "uniform -1 1", "generator (i * 7) % 5 - 2")), "");
  EXPECT_THAT(ErrorOf(Without(good, "uniform -1 1", "generator i * n")),
              HasSubstr("unknown name 'n'"));
  EXPECT_THAT(ErrorOf(Without(good, "grid = ", "gird = ")), HasSubstr("did you mean 'grid'"));
  EXPECT_THAT(ErrorOf(good + "\n[[launch"), HasSubstr("kernel.toml:"));
  EXPECT_THAT(ErrorOf("source = \"a.cu\""), HasSubstr("no [[launch]]"));
}

TEST(KernelToml, LettersBeyondAsciiOutsideOfStringsAreAMistakeAndNothingWorse) {
  for (const char* letter : {"é", "ƨ", "ᚠ", "\u3042", "\U0001f600"}) {
    EXPECT_THAT(ErrorOf("[defaul" + std::string(letter) + "]\n" + kSaxpy),
                HasSubstr("kernel.toml:1"))
        << letter;
    EXPECT_EQ(ErrorOf("# " + std::string(letter) + "\n" + kSaxpy), "") << letter;
  }
}

TEST(KernelToml, AHeaderWithoutAKeyIsAMistake) {
  for (const char* header : {"[=]", "[#]", "[[,]]", "[.a]", "[\x01]"})
    EXPECT_THAT(ErrorOf(std::string(header) + "\n" + kSaxpy), HasSubstr("kernel.toml:1")) << header;
}

TEST(KernelToml, MissingSourceNamesTheLine) {
  const FileReader none = [](const std::string& name) -> Result<std::string> {
    return Fail(ErrorCode::kNotFound, "no such file: " + name);
  };
  const auto kernel = ParseKernelToml(kSaxpy, "kernel.toml", none);
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().ToString(), HasSubstr("kernel.toml:3"));
}

TEST(KernelToml, WithoutCheckSizesTheyAreDerived) {
  std::string text = kSaxpy;
  text.erase(text.find("check = "), std::string("check = [{ n = 1000 }]").size());
  const auto kernel = ParseKernelToml(text, "saxpy.toml", kAnyFile);
  ASSERT_TRUE(kernel) << kernel.error().ToString();
  ASSERT_EQ(kernel->check_dims.size(), 2u);
  EXPECT_EQ(kernel->check_dims[0].at("n"), 1 << 13);
  EXPECT_EQ(kernel->check_dims[1].at("n"), 1 << 14);
}

TEST(KernelToml, HeadersOfTheSourceArePartOfIt) {
  std::string header = "#define BUG 1\n";
  const FileReader read = [&](const std::string& name) -> Result<std::string> {
    if (name == "saxpy.cu") return "#include \"bug.h\"\n__global__ void saxpy() {}";
    if (name == "include/bug.h") return header;
    return Fail(ErrorCode::kNotFound, "no such file");
  };
  std::string text = kSaxpy;
  text.replace(text.find("-use_fast_math"), 14, "-Iinclude");
  const auto before = ParseKernelToml(text, "saxpy.toml", read);
  ASSERT_TRUE(before) << before.error().ToString();
  EXPECT_THAT(before->source.text, HasSubstr("#define BUG 1"));
  header = "#define BUG 0\n";
  EXPECT_THAT(ParseKernelToml(text, "saxpy.toml", read)->source.text, HasSubstr("#define BUG 0"));
}

}  // namespace
}  // namespace atunner
