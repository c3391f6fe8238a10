// What MakeShadow makes of a text, without running it.
#include "atunner/shadow/shadow.h"

#include <gmock/gmock.h>

#include "atunner/ptx/module.h"
#include "atunner/ptx/statements.h"
#include "atunner/shadow/cell_values.h"

namespace atunner::shadow {
namespace {

std::string Module(const std::string& body, const std::string& more = "") {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n" + more +
         ".visible .entry k(.param .u64 out)\n{\n"
         "\t.reg .pred %p<4>;\n\t.reg .f32 %f<8>;\n\t.reg .b32 %r<8>;\n\t.reg .b64 %rd<8>;\n"
         "\tld.param.u64 %rd1, [out];\n" +
         body + "\tret;\n}\n";
}

const std::string kSum =
    "\tld.global.f32 %f1, [%rd1];\n\tadd.f32 %f2, %f1, 0f3F800000;\n"
    "\tst.global.f32 [%rd1], %f2;\n";

/// The original's instructions, in order, are among the shadow's.
TEST(Shadow, OnlyInserts) {
  const std::string text = Module(kSum);
  const auto shadow = MakeShadow(text);
  ASSERT_TRUE(shadow.has_value()) << shadow.error().ToString();
  ASSERT_TRUE(ptx::Parse(shadow->ptx).has_value());
  size_t at = 0;
  for (const std::string line : {"ld.param.u64 %rd1, [out];", "ld.global.f32 %f1, [%rd1];",
                                 "add.f32 %f2, %f1, 0f3F800000;", "st.global.f32 [%rd1], %f2;"}) {
    at = shadow->ptx.find(line, at);
    ASSERT_NE(at, std::string::npos) << line;
  }
  EXPECT_THAT(shadow->ptx, testing::HasSubstr("add.rn.f64"));
  EXPECT_THAT(shadow->ptx, testing::HasSubstr(std::string(kSymbol)));
  EXPECT_FALSE(shadow->uses_shared);
}

TEST(Shadow, IsRefusedForTensorCopies) {
  const auto refused = MakeShadow(
      Module("\twgmma.fence.sync.aligned;\n\twgmma.commit_group.sync.aligned;\n"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().ToString(), testing::HasSubstr("wgmma.fence"));
  EXPECT_EQ(refused.error().where, "PTX line 11");
}

TEST(Shadow, OfOtherEntriesNothingIsAsked) {
  const std::string text = Module(
      kSum, ".visible .entry other()\n{\n\twgmma.fence.sync.aligned;\n\tret;\n}\n");
  EXPECT_FALSE(MakeShadow(text).has_value());
  const std::string entries[] = {"k"};
  EXPECT_TRUE(MakeShadow(text, entries).has_value());
}

TEST(Shadow, NamesPlacesWithoutTwins) {
  const auto shadow = MakeShadow(
      Module("\tld.global.f32 %f1, [%rd1];\n"
             "\tmin.xorsign.abs.f32 %f2, %f1, %f1;\n"
             "\tst.global.f32 [%rd1], %f2;\n"));
  ASSERT_TRUE(shadow.has_value()) << shadow.error().ToString();
  ASSERT_EQ(shadow->lossy.size(), 1u);
  EXPECT_EQ(shadow->lossy[0].line, 12u);
  EXPECT_EQ(shadow->lossy[0].what, "min.xorsign.abs.f32");
}

TEST(Shadow, RefusesInstructionsWithoutOperands) {
  for (const std::string wrong : {"cvt.rn.f16x2.f32 %r1, %f1;", "fma.rn.f32 %f1, %f2, %f2;",
                                  "mov.b64 %rd1, {};", "add.f32 %f1, %f2;"}) {
    const auto refused = MakeShadow(Module(kSum + "\t" + wrong + "\n"));
    ASSERT_FALSE(refused.has_value()) << wrong;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidInput) << wrong;
    EXPECT_EQ(refused.error().where, "PTX line 14") << wrong;
  }
}

TEST(Shadow, BytesOfARegisterAreTheOriginals) {
  const auto shadow = MakeShadow(
      Module("\t.reg .b8 %c<4>;\n\tld.global.u32 %r1, [%rd1];\n"
             "\tmov.b32 {%c0, %c1, %c2, %c3}, %r1;\n"
             "\tmov.b32 %r2, {%c3, %c2, %c1, %c0};\n"
             "\tst.global.u32 [%rd1], %r2;\n" +
             kSum));
  ASSERT_TRUE(shadow.has_value()) << shadow.error().ToString();
  EXPECT_TRUE(ptx::Parse(shadow->ptx).has_value());
}

TEST(Shadow, NamesAtomicsOnVectors) {
  const auto shadow = MakeShadow(Module("\tred.global.add.v2.f32 [%rd1], {%f1, %f2};\n"));
  ASSERT_TRUE(shadow.has_value()) << shadow.error().ToString();
  ASSERT_EQ(shadow->lossy.size(), 1u);
  EXPECT_EQ(shadow->lossy[0].what, "red.global.add.v2.f32");
}

TEST(Shadow, StatesTheLargestBlock) {
  EXPECT_THAT(MakeShadow(Module(kSum))->ptx, testing::HasSubstr(".maxntid 1024"));
}

TEST(Cells, CountOnlyForTheirBits) {
  const float stored = 0.1f;
  Cell cell{.value = 0.1,
            .bits = std::bit_cast<uint32_t>(stored),
            .rounded = std::bit_cast<uint32_t>(stored)};
  const auto twin = [&](float memory) {
    return TwinOf(DType::kFloat32, reinterpret_cast<const std::byte*>(&memory), &cell);
  };
  EXPECT_EQ(twin(0.1f), 0.1);
  EXPECT_EQ(twin(0.25f), 0.25);
  cell.value = 0.7;  // it does not round to the bits, which then count
  EXPECT_EQ(twin(0.1f), double{0.1f});
  cell = {.value = 12.125, .bits = kAtomicFloat32, .rounded = kAtomicMark};
  EXPECT_EQ(twin(0.1f), 12.125);
}

TEST(Cells, OfADoubleAreTwoHalves) {
  const double memory = 3.25, truth = 3.5;
  const auto halves = [](double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    return std::pair(static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32));
  };
  Cell cells[4];
  cells[0] = {.bits = halves(memory).first, .rounded = halves(truth).first};
  cells[2] = {.bits = halves(memory).second, .rounded = halves(truth).second};
  const auto* bytes = reinterpret_cast<const std::byte*>(&memory);
  EXPECT_EQ(TwinOf(DType::kFloat64, bytes, cells), truth);
  cells[2].bits = 0;
  EXPECT_EQ(TwinOf(DType::kFloat64, bytes, cells), memory);
}

}  // namespace
}  // namespace atunner::shadow
