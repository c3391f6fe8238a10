#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "atunner/base/random.h"
#include "atunner/model/json/json.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/trial/trial.h"

namespace atunner {
namespace {

using testing::HasSubstr;

TEST(DType, HalfAndBFloat16RoundTripEveryBitPattern) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto word = static_cast<uint16_t>(bits);
    if (!std::isnan(HalfToFloat(word))) {
      EXPECT_EQ(FloatToHalf(HalfToFloat(word)), word);
    }
    if (!std::isnan(BFloat16ToFloat(word))) {
      EXPECT_EQ(FloatToBFloat16(BFloat16ToFloat(word)), word);
    }
  }
}

TEST(DType, StoreRoundsOnceFromDouble) {
  // 1 + 2^-11 + 2^-40 lies just above the midpoint of two halves; through float it would tie and
  // round down.
  uint16_t half = 0;
  StoreElement(DType::kFloat16, &half, 0, 1.0 + 0x1p-11 + 0x1p-40);
  EXPECT_EQ(LoadElement(DType::kFloat16, &half, 0), 1.0 + 0x1p-10);
  StoreElement(DType::kFloat16, &half, 0, 1.0 + 0x1p-11);
  EXPECT_EQ(LoadElement(DType::kFloat16, &half, 0), 1.0);
  StoreElement(DType::kFloat16, &half, 0, 65520.0);
  EXPECT_TRUE(std::isinf(LoadElement(DType::kFloat16, &half, 0)));
}

TEST(DType, EveryEightBitFloatSurvivesARoundTripAndTheOrderOfCodesIsThatOfValues) {
  for (DType dtype : {DType::kFloat8E4M3, DType::kFloat8E5M2}) {
    double before = -1;
    for (unsigned bits = 0; bits < 128; ++bits) {
      const auto code = static_cast<uint8_t>(bits);
      const double value = LoadElement(dtype, &code, 0);
      if (std::isnan(value)) continue;
      EXPECT_GT(value, before);
      before = value;
      for (double sign : {1.0, -1.0}) {
        uint8_t again = 0;
        StoreElement(dtype, &again, 0, sign * value);
        EXPECT_EQ(again, sign > 0 ? code : code | 0x80) << Name(dtype);
      }
    }
  }
}

TEST(DType, EightBitFloatsRoundToEvenAndOverflowAsTheirFormatSays) {
  const auto rounded = [](DType dtype, double value) {
    uint8_t code = 0;
    StoreElement(dtype, &code, 0, value);
    return LoadElement(dtype, &code, 0);
  };
  EXPECT_EQ(rounded(DType::kFloat8E4M3, 1.0625), 1.0) << "a tie goes to the even neighbour";
  EXPECT_EQ(rounded(DType::kFloat8E4M3, 1.1875), 1.25);
  EXPECT_EQ(rounded(DType::kFloat8E4M3, 464), 448);
  EXPECT_TRUE(std::isnan(rounded(DType::kFloat8E4M3, 465)));
  EXPECT_EQ(rounded(DType::kFloat8E4M3, 0x1p-9), 0x1p-9) << "the least subnormal";
  EXPECT_EQ(rounded(DType::kFloat8E4M3, 0x1p-10), 0);
  EXPECT_EQ(rounded(DType::kFloat8E5M2, 61439), 57344);
  EXPECT_EQ(rounded(DType::kFloat8E5M2, -61440), -INFINITY);
}

Value EvalOk(std::string_view text, const Dims& dims = {}) {
  auto expr = Expr::Parse(text);
  EXPECT_TRUE(expr.has_value()) << text << ": " << (expr ? "" : expr.error().ToString());
  auto value = expr->Evaluate(Bindings(dims));
  EXPECT_TRUE(value.has_value()) << text << ": " << (value ? "" : value.error().ToString());
  return value.value_or(Value(std::string("error")));
}

TEST(Expr, FollowsPython) {
  EXPECT_EQ(EvalOk("1 + 2 * 3"), Value(int64_t{7}));
  EXPECT_EQ(EvalOk("-7 // 2"), Value(int64_t{-4}));
  EXPECT_EQ(EvalOk("-7 % 3"), Value(int64_t{2}));
  EXPECT_EQ(EvalOk("2 ** 3 ** 2"), Value(int64_t{512}));
  EXPECT_EQ(EvalOk("-2 ** 2"), Value(int64_t{-4}));
  EXPECT_EQ(EvalOk("7 / 2"), Value(3.5));
  EXPECT_EQ(EvalOk("32 <= 8 * 16 <= 1024"), Value(true));
  EXPECT_EQ(EvalOk("1 < 3 < 2"), Value(false));
  EXPECT_EQ(EvalOk("x == 0 or 10 % x == 0", {{"x", 0}}), Value(true))
      << "or must not look at its right side";
  EXPECT_EQ(EvalOk("3 in [1, 2, 3] and 4 not in (1, 2)"), Value(true));
  EXPECT_EQ(EvalOk("5 if 1 > 2 else 6"), Value(int64_t{6}));
  EXPECT_EQ(EvalOk("1 > 2 ? 5 : 6"), Value(int64_t{6}));
  EXPECT_EQ(EvalOk("not 0 && !0"), Value(true));
  EXPECT_EQ(EvalOk("max(3, min(9, 4)) + ceil_div(10, 4) + math.ceil(2.5)"), Value(int64_t{10}));
  EXPECT_EQ(EvalOk("p[\"bx\"] * 2", {{"bx", 16}}), Value(int64_t{32}));
  EXPECT_EQ(EvalOk("'half' == 'half'"), Value(true));
  EXPECT_EQ(EvalOk("1 << 4 | 3 & 1"), Value(int64_t{17}));
}

TEST(Expr, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(Expr::Parse("a >").error().ToString(), HasSubstr("column 4"));
  EXPECT_THAT(Expr::Parse("(1").error().what, HasSubstr("')'"));
  EXPECT_THAT(Expr::Parse("1 2").error().what, HasSubstr("end"));
  EXPECT_THAT(Expr::Parse(std::string(10000, '(')).error().what, HasSubstr("deep"));
  std::string terms = "a";
  for (int i = 0; i < 30000; ++i) terms += " + a";
  EXPECT_THAT(Expr::Parse(terms).error().what, HasSubstr("fewer operators"));
  EXPECT_THAT(Expr::MustParse("1 // 0").Evaluate({}).error().what, HasSubstr("zero"));
  EXPECT_THAT(Expr::MustParse("nope + 1").Evaluate({}).error().what, HasSubstr("'nope'"));
  EXPECT_THAT(Expr::MustParse("9223372036854775807 + 1").Evaluate({}).error().what,
              HasSubstr("overflow"));
  EXPECT_THAT(Expr::MustParse("7 / 2").EvaluateInt({}).error().what, HasSubstr("whole"));
}

TEST(Expr, NeverCrashesOnRandomText) {
  const std::string_view pieces[] = {"a", "1",    "+",    "-",      "**",   "(",   ")",  "[",
                                     "]", " in ", " if ", " else ", "not ", "<",   "==", "//",
                                     ",", "'x'",  "?",    ":",      "0.5",  "min("};
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (uint64_t n = random.Below(12); n > 0; --n) text += pieces[random.Below(std::size(pieces))];
    if (auto expr = Expr::Parse(text)) (void)expr->Evaluate(Bindings(Dims{{"a", 3}}));
  }
}

TEST(ParameterSpace, ValidatesAndApplies) {
  ParameterSpace space;
  space.parameters = {{"bx", {int64_t{16}, int64_t{32}}, ""},
                      {"by", {int64_t{1}, int64_t{64}}, ""}};
  space.constraints = {{Expr::MustParse("bx * by <= 1024"), "block size"}};
  ASSERT_TRUE(space.Validate({}));
  EXPECT_EQ(space.CartesianSize(), 4);
  EXPECT_FALSE(space.Allows({{int64_t{32}, int64_t{64}}}, {}).value());
  EXPECT_TRUE(space.Allows({{int64_t{16}, int64_t{64}}}, {}).value());
  space.constraints.push_back({Expr::MustParse("bz > 1"), ""});
  EXPECT_THAT(space.Validate({}).error().ToString(), HasSubstr("bz"));
  EXPECT_TRUE(space.Validate({{"bz", 4}}));
}

TEST(LaunchPlan, ResolvesAndChecksLimits) {
  LaunchPlan plan;
  plan.parameter_names = {"bx"};
  plan.parameter_values = {Value(int64_t{128})};
  LaunchStep step;
  step.entry = "k";
  step.grid = {Expr::MustParse("ceil_div(rows, bx)"), 1, 1};
  step.block = {Expr::MustParse("bx"), 1, 1};
  step.args = {ArgBinding::Tensor("x"),
               ArgBinding::Scalar(DType::kFloat32, Expr::MustParse("eps"))};
  plan.steps = {step};
  const Attributes attributes = {{"eps", 0.5}};
  const ConcretePlan concrete = Resolve(plan, {{"rows", 1000}}, attributes).value();
  EXPECT_EQ(concrete.steps[0].grid, (Dim3{8, 1, 1}));
  float eps = 0;
  std::memcpy(&eps, concrete.steps[0].args[1].scalar.bytes.data(), 4);
  EXPECT_EQ(eps, 0.5f);
  plan.parameter_values = {Value(int64_t{2048})};
  EXPECT_THAT(Resolve(plan, {{"rows", 1000}}, attributes).error().what,
              HasSubstr("block x is 2048"));
}

TEST(LaunchPlan, TensorMapsAreResolvedAndChecked) {
  LaunchPlan plan;
  plan.parameter_names = {"tile"};
  plan.parameter_values = {Value(int64_t{64})};
  plan.workspaces = {{"planes", Expr::MustParse("2 * rows * columns")}};
  LaunchStep step;
  step.entry = "k";
  step.cooperative = true;
  step.programmatic = true;
  TensorView view;
  view.dims = {Expr::MustParse("columns"), Expr::MustParse("rows")};
  view.strides = {Expr::MustParse("columns")};
  view.box = {Expr::MustParse("tile"), 8};
  view.swizzle_bytes = 128;
  step.args = {ArgBinding::Map("x", DType::kBFloat16, view),
               ArgBinding::WorkspaceMap("planes", DType::kBFloat16, view)};
  plan.steps = {step};
  const Json json = ToJson(plan);
  const auto read = FromJson<LaunchPlan>(json);
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(ToJson(*read), json);
  const ConcreteStep concrete = Resolve(*read, {{"rows", 100}, {"columns", 4096}}, {})->steps[0];
  EXPECT_TRUE(concrete.cooperative);
  EXPECT_TRUE(concrete.programmatic);
  EXPECT_TRUE(InWorkspace(concrete.args[1].kind));
  for (const ConcreteArg& arg : concrete.args) {
    EXPECT_EQ(arg.map.dims, (std::vector<uint64_t>{4096, 100}));
    EXPECT_EQ(arg.map.strides, std::vector<uint64_t>{8192}) << "bytes";
    EXPECT_EQ(arg.map.box, (std::vector<uint32_t>{64, 8}));
  }
  const auto odd = Resolve(plan, {{"rows", 100}, {"columns", 4097}}, {});
  EXPECT_THAT(odd.error().ToString(), HasSubstr("no multiple of 16 bytes"));
  plan.parameter_values = {Value(int64_t{128})};
  EXPECT_THAT(Resolve(plan, {{"rows", 100}, {"columns", 4096}}, {}).error().ToString(),
              HasSubstr("more than the swizzled 128"));
}

TEST(KernelSpec, ShapesAreChecked) {
  KernelSpec spec;
  const ArgSpec arg{.name = "x",
                    .role = Role::kInput,
                    .dtype = DType::kFloat16,
                    .shape = {Expr::MustParse("n"), 4},
                    .value = {},
                    .fill = {}};
  EXPECT_EQ(ShapeOf(arg, spec, {{"n", 10}}).value().bytes, 80);
  EXPECT_THAT(ShapeOf(arg, spec, {{"n", 0}}).error().ToString(), HasSubstr("at least 1"));
  EXPECT_THAT(ShapeOf(arg, spec, {{"n", int64_t{1} << 40}}).error().what, HasSubstr("2^40"));
}

TEST(Budget, Parses) {
  EXPECT_EQ(Budget::Parse("120s")->seconds, 120);
  EXPECT_EQ(Budget::Parse("2m")->seconds, 120);
  EXPECT_EQ(Budget::Parse("50")->trials, 50);
  EXPECT_EQ(Budget::Parse("50 trials,1h")->seconds, 3600);
  for (const char* bad : {"", "x", "-3", "0", "1.5", "3 weeks", "nan"})
    EXPECT_FALSE(Budget::Parse(bad).has_value()) << bad;
}

TEST(Json, NounsRoundTrip) {
  KernelSpec spec;
  spec.name = "softmax";
  spec.dims = {{"rows", 8}, {"cols", 128}};
  spec.attributes = {{"eps", 1e-5}, {"causal", true}, {"mode", std::string("fast")}};
  spec.args = {{.name = "x",
                .role = Role::kInput,
                .dtype = DType::kBFloat16,
                .shape = {Expr::MustParse("rows"), Expr::MustParse("cols")},
                .value = {},
                .fill = {}}};
  spec.oracle.operator_name = "softmax";
  spec.tolerance.relative = 1e-3;
  const Json json = ToJson(spec);
  const KernelSpec again = FromJson<KernelSpec>(json).value();
  EXPECT_EQ(ToJson(again).dump(), json.dump());
  EXPECT_EQ(again.ContentDigest(), spec.ContentDigest());
  EXPECT_EQ(again.args[0].shape[1].text(), "cols");

  Trial trial;
  trial.candidate.what = Configuration{{int64_t{3}, 1.0, true, std::string("a")}};
  trial.verdict = {VerdictKind::kRace,
                   "two threads",
                   {{.check = "race", .family = "", .dims = {{"n", 3}}, .detail = "x"}},
                   false};
  trial.measurement = Measurement{.median_ns = 5, .samples_ns = {4, 5, 6}};
  const Trial back = FromJson<Trial>(ParseJson(ToJson(trial).dump()).value()).value();
  EXPECT_EQ(back.configuration(), trial.configuration()) << "1.0 must not come back as 1";
  EXPECT_EQ(back.verdict.kind, VerdictKind::kRace);
  EXPECT_EQ(back.measurement->samples_ns.size(), 3u);
  EXPECT_FALSE(back.estimate.has_value());
}

TEST(Json, AttributesMayBeInfinite) {
  KernelSpec spec;
  spec.attributes["p"] = -HUGE_VAL;
  const std::string text = ToJson(spec).dump();
  const KernelSpec again = FromJson<KernelSpec>(ParseJson(text).value()).value();
  EXPECT_EQ(ToString(again.attributes.at("p")), "-inf");
  EXPECT_EQ(again.ContentDigest(), spec.ContentDigest());
}

TEST(Json, BadInputIsAnError) {
  EXPECT_FALSE(ParseJson("{").has_value());
  EXPECT_THAT(ParseJson(std::string(100000, '[')).error().what, HasSubstr("256"));
  EXPECT_FALSE(FromJson<KernelSpec>(ParseJson(R"({"dims": 3})").value()).has_value());
  EXPECT_FALSE(
      FromJson<Trial>(ParseJson(R"({"verdict": {"kind": "splendid"}})").value()).has_value());
}

TEST(Json, Base64) {
  Random random(1);
  for (size_t n = 0; n < 70; ++n) {
    std::string bytes;
    for (size_t i = 0; i < n; ++i) bytes += static_cast<char>(random.Below(256));
    EXPECT_EQ(Base64Decode(Base64Encode(bytes)).value(), bytes);
  }
  EXPECT_FALSE(Base64Decode("abc").has_value());
  EXPECT_FALSE(Base64Decode("ab!=").has_value());
}

TEST(LaunchPlan, ForeignPlansAreCheckedAndNotTrusted) {
  LaunchPlan plan;
  plan.steps.emplace_back().entry = "k";
  EXPECT_TRUE(Resolve(plan, {}, {}).has_value());
  plan.parameter_names = {"a", "b"};
  plan.parameter_values = {int64_t{1}};
  const auto uneven = Resolve(plan, {}, {});
  ASSERT_FALSE(uneven.has_value());
  EXPECT_EQ(uneven.error().code, ErrorCode::kInvalidInput);
}

TEST(PackScalar, RefusesWhatAnIntegerCannotHold) {
  EXPECT_TRUE(PackScalar(DType::kInt8, -128.0).has_value());
  EXPECT_TRUE(PackScalar(DType::kInt32, true).has_value());
  EXPECT_FALSE(PackScalar(DType::kInt8, 128.0).has_value());
  EXPECT_FALSE(PackScalar(DType::kUInt16, -1.0).has_value());
  EXPECT_FALSE(PackScalar(DType::kInt32, 1e30).has_value());
  EXPECT_FALSE(PackScalar(DType::kInt64, 1e300).has_value());
  EXPECT_FALSE(PackScalar(DType::kInt64, std::numeric_limits<double>::infinity()).has_value());
  EXPECT_FALSE(PackScalar(DType::kInt64, std::numeric_limits<double>::quiet_NaN()).has_value());
  EXPECT_FALSE(PackScalar(DType::kInt32, 1.5).has_value());
}

}  // namespace
}  // namespace atunner
