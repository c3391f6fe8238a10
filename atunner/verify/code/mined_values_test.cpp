#include "atunner/verify/code/mined_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "atunner/verify/code/element_bits.h"

namespace atunner {
namespace {

using testing::Contains;
using testing::Not;

/// A kernel with these instructions, in front of them variables of the module.
std::string Ptx(const std::string& body, const std::string& variables = "") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + variables +
         ".visible .entry k(\n\t.param .u64 x\n)\n{\n\t.reg .pred %p<9>;\n\t.reg .b16 %h<9>;\n"
         "\t.reg .b32 %r<9>;\n\t.reg .f32 %f<9>;\n\t.reg .f64 %d<9>;\n\t.reg .b64 %rd<9>;\n" +
         body + "\tret;\n}\n";
}

TEST(MinedValues, AreWhatFloatsAreComparedWithAndClippedAt) {
  const MinedValues found = MineValues(
      Ptx("\tsetp.gt.f32 %p1, %f1, 0f43960000;\n"
          "\tmin.f32 %f2, %f1, 0f42C80000;\n"
          "\tmax.f64 %d1, %d2, 0dC059000000000000;\n"
          "\tselp.f32 %f3, 0f40E00000, %f1, %p1;\n"));
  for (double value : {300.0, 100.0, -100.0, 7.0}) EXPECT_THAT(found.floats, Contains(value));
  EXPECT_TRUE(found.integers.empty());
}

TEST(MinedValues, ReachInstructionsThroughMovesAndConversions) {
  const MinedValues found = MineValues(
      Ptx("\tmov.f32 %f1, 0f43960000;\n"
          "\tsetp.gt.f32 %p1, %f2, %f1;\n"
          "\tmov.u32 %r1, 42;\n\tcvt.rn.f32.s32 %f3, %r1;\n"
          "\tsetp.eq.f32 %p2, %f2, %f3;\n"
          "\tmov.b16 %h1, 0x4900;\n"
          "\tsetp.lt.f16 %p3, %h2, %h1;\n"
          "\tmov.f32 %f4, 0f41100000;\n"
          "\tmov.f32 %f4, 0f41000000;\n"
          "\tsetp.lt.f32 %p4, %f2, %f4;\n"));
  for (double value : {300.0, 42.0, 10.0}) EXPECT_THAT(found.floats, Contains(value));
  EXPECT_THAT(found.floats, Not(Contains(9.0))) << "a register that is written twice";
}

TEST(MinedValues, OfIntegersAreThresholdsMasksAndSwitches) {
  const MinedValues found = MineValues(
      Ptx("\tsetp.eq.s32 %p1, %r1, -1234567;\n"
          "\tsetp.gt.u32 %p2, %r1, 4000000000;\n"
          "\tand.b32 %r2, %r1, 15;\n\trem.u32 %r3, %r1, 10;\n"
          "\tadd.s32 %r4, %r1, -100;\n"
          "\tsetp.lt.u32 %p3, %r4, 7;\n"
          "\tmul.wide.s32 %rd1, %r1, 72;\n"
          "\tld.global.u32 %r5, [%rd1+5555];\n"));
  for (int64_t value : {int64_t{-1234567}, int64_t{4000000000}, int64_t{15}, int64_t{10}})
    EXPECT_THAT(found.integers, Contains(value));
  EXPECT_THAT(found.integers, Contains(107)) << "x - 100 < 7";
  EXPECT_THAT(found.integers, Not(Contains(72))) << "a distance of elements";
  EXPECT_THAT(found.integers, Not(Contains(5555))) << "an offset";
}

TEST(MinedValues, ThresholdsAreFollowedThroughASumAndAProduct) {
  const MinedValues found = MineValues(
      Ptx("\tmul.f32 %f2, %f1, 0f3F000000;\n"
          "\tadd.f32 %f3, %f1, 0f40A00000;\n"
          "\tsetp.gt.f32 %p1, %f2, 0f43960000;\n"));
  EXPECT_THAT(found.floats, Contains(600)) << "x * 0.5 > 300";
  EXPECT_THAT(found.floats, Contains(295)) << "x + 5 > 300";
  EXPECT_THAT(found.floats, Contains(std::sqrt(300.0))) << "x * x > 300";
}

TEST(MinedValues, AreEntriesOfTables) {
  const MinedValues found = MineValues(
      Ptx("",
          ".const .align 4 .u32 primes[4] = {2, 3, 65537, 104729};\n"
          ".global .align 4 .f32 edges[2] = {0f3E99999A, 0f447A0000};\n"
          ".const .align 4 .b8 raw[8] = {0, 0, 32, 65, 0, 0, 160, 64};\n"));
  for (int64_t value : {int64_t{65537}, int64_t{104729}})
    EXPECT_THAT(found.integers, Contains(value));
  for (double value : {1000.0, 10.0, 5.0}) EXPECT_THAT(found.floats, Contains(value));
}

TEST(MinedValues, BitsOfFloatsAreComparedAsIntegers) {
  const std::string compare = "\tsetp.eq.s32 %p1, %r1, 1101332480;\n";
  EXPECT_THAT(MineValues(Ptx("\tmov.b32 %r1, %f1;\n" + compare)).floats, Contains(20.625));
  EXPECT_TRUE(MineValues(Ptx("\tsetp.lt.s32 %p1, %r1, 4096;\n")).floats.empty()) << "a count";
}

TEST(MinedValues, AreNoneOfWhatCannotBeParsed) {
  EXPECT_TRUE(MineValues("no PTX").empty());
  EXPECT_TRUE(MineValues("").empty());
  EXPECT_TRUE(MineValues(Ptx("\tsetp.gt.f32 %p1, %f1, 0f7F800000;\n")).empty()) << "infinity";
}

TEST(MinedValues, ScalarArgumentsAreAmongThem) {
  KernelSpec spec;
  const Dims dims = {{"n", 1000}};
  LaunchStep step{.entry = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}};
  step.args = {ArgBinding::Scalar(DType::kInt32, Expr::MustParse("n * 2")),
               ArgBinding::Scalar(DType::kFloat32, Expr::MustParse("0.75"))};
  MinedValues found{{}, {7}};
  MineScalars({.steps = {step}}, spec, dims, found);
  EXPECT_THAT(found.integers, testing::ElementsAre(7, 2000));
  EXPECT_THAT(found.floats, testing::ElementsAre(0.75));
}

TEST(MinedValues, BecomeBitsOfATypeWithTheNumbersBesideThem) {
  const MinedValues values{{300, 1e30}, {-1, 300, 70000}};
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const auto of = [&](DType dtype, double low, double last) {
    std::vector<double> numbers;
    for (uint64_t bits : MinedBits(values, dtype, low, last))
      numbers.push_back(ElementOf(dtype, bits));
    std::ranges::sort(numbers);
    return numbers;
  };
  EXPECT_THAT(of(DType::kInt16, -kAny, kAny), testing::ElementsAre(-2, -1, 0, 299, 300, 301));
  EXPECT_THAT(of(DType::kUInt8, -kAny, kAny), testing::IsEmpty());
  EXPECT_THAT(of(DType::kInt32, 0, 300), testing::ElementsAre(0, 299, 300));
  const auto floats = of(DType::kFloat32, -1000, 1000);
  EXPECT_THAT(floats, testing::ElementsAre(std::nextafter(300.0f, 0.0f), 300,
                                           std::nextafter(300.0f, 1000.0f)));
  EXPECT_EQ(of(DType::kFloat16, -kAny, kAny).size(), 3u) << "1e30 is no half";
  EXPECT_EQ(of(DType::kFloat32, -kAny, kAny).size(), 6u);
}

TEST(MinedValues, AreDividedIntoModerateAndExtremeOnes) {
  const MinedValues values{{-1e30, 1e-30, 0, 5}, {3}};
  EXPECT_EQ(ModerateOf(values), (MinedValues{{0, 5}, {3}}));
  EXPECT_EQ(ExtremeOf(values), (MinedValues{{-1e30, 1e-30}, {}}));
  EXPECT_EQ(Without(values, {{5}, {3}}), (MinedValues{{-1e30, 1e-30, 0}, {}}));
}

TEST(MinedValues, AreUsableWhereAnInputHasTheirKind) {
  KernelSpec spec;
  spec.args = {{.name = "x", .role = Role::kInput, .dtype = DType::kFloat32},
               {.name = "y", .role = Role::kOutput, .dtype = DType::kInt32}};
  const MinedValues values{{1.5}, {7}};
  EXPECT_EQ(UsableOf(values, spec), (MinedValues{{1.5}, {}}));
  spec.args[0].dtype = DType::kInt32;
  EXPECT_EQ(UsableOf(values, spec), (MinedValues{{}, {7}}));
}

// Each set of inputs needs a reference. Candidates that differ in a few constants share one.
TEST(MinedPool, LaterSetsHoldTheConstantsOfEarlierCandidates) {
  MinedPool pool;
  EXPECT_EQ(pool.Extended({{1, 2}, {}}), (MinedValues{{1, 2}, {}}));
  EXPECT_EQ(pool.Extended({{2, 3}, {5}}), (MinedValues{{1, 2, 3}, {5}}));
  EXPECT_EQ(pool.Extended({{1}, {5}}), (MinedValues{{1, 2, 3}, {5}})) << "the same inputs again";
}

TEST(MinedPool, TooManyConstantsBeginAnew) {
  MinedPool pool;
  MinedValues many;
  for (int i = 0; i < 90; ++i) many.floats.push_back(i);
  EXPECT_EQ(pool.Extended(many), many);
  const MinedValues others{{-9, -8, -7, -6, -5, -4, -3}, {}};
  EXPECT_EQ(pool.Extended(others), others) << "every value must occur in small inputs";
}

TEST(MinedPool, AfterSomeSetsOnWhichNothingIsComparedNoMoreAreJoined) {
  MinedPool pool;
  for (double value : {1.0, 2.0, 3.0}) {
    EXPECT_EQ(pool.Extended({{value}, {}}), (MinedValues{{value}, {}}));
    pool.Spoilt();
  }
  EXPECT_EQ(pool.Extended({{4}, {}}), (MinedValues{{4}, {}}));
  EXPECT_EQ(pool.Extended({{5}, {}}), (MinedValues{{5}, {}}));
}

}  // namespace
}  // namespace atunner
