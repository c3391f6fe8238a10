#include "atunner/verify/code/input_uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The uses of "x", "idx" and "y" in a kernel whose pointers are in %rd1, %rd2 and %rd3.
InputUses UsesIn(const std::string& body) {
  CompiledModule module;
  module.ptx =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(\n\t.param .u64 px,\n\t.param .u64 pi,\n\t.param .u64 py,\n"
      "\t.param .u32 n\n)\n{\n\t.reg .pred %p<9>;\n\t.reg .b32 %r<20>;\n\t.reg .f32 %f<9>;\n"
      "\t.reg .b64 %rd<20>;\n\t.shared .align 4 .b8 s[256];\n"
      "\tld.param.u64 %rd1, [px];\n\tld.param.u64 %rd2, [pi];\n\tld.param.u64 %rd3, [py];\n"
      "\tld.param.u32 %r1, [n];\n\tmov.u32 %r2, %tid.x;\n\tmul.wide.u32 %rd4, %r2, 4;\n"
      "\tadd.s64 %rd5, %rd1, %rd4;\n\tadd.s64 %rd6, %rd2, %rd4;\n\tadd.s64 %rd7, %rd3, %rd4;\n" +
      body + "\tret;\n}\n";
  LaunchStep step{.entry = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}};
  step.args = {ArgBinding::Tensor("x"), ArgBinding::Tensor("idx"), ArgBinding::Tensor("y"),
               ArgBinding::Scalar(DType::kInt32, 32)};
  return FindInputUses(module, {.steps = {step}});
}

TEST(InputUses, AnIndexReachesAnAddress) {
  const InputUses uses = UsesIn(
      "\tld.global.u32 %r3, [%rd6];\n\tmul.wide.s32 %rd8, %r3, 4;\n\tadd.s64 %rd9, %rd1, %rd8;\n"
      "\tld.global.f32 %f1, [%rd9];\n\tst.global.f32 [%rd7], %f1;\n");
  EXPECT_TRUE(uses.known);
  EXPECT_THAT(uses.addresses, ElementsAre("idx"));
  EXPECT_THAT(uses.loops, IsEmpty());
}

TEST(InputUses, AnIndexIsFollowedThroughSharedMemoryAndOtherTensors) {
  EXPECT_THAT(UsesIn("\tld.global.u32 %r3, [%rd6];\n\tst.shared.u32 [s+4], %r3;\n"
                     "\tld.shared.u32 %r4, [s+4];\n\tmul.wide.s32 %rd8, %r4, 4;\n"
                     "\tadd.s64 %rd9, %rd1, %rd8;\n\tld.global.f32 %f1, [%rd9];\n")
                  .addresses,
              ElementsAre("idx"));
  EXPECT_THAT(UsesIn("\tld.global.u32 %r4, [%rd7];\n\tmul.wide.s32 %rd8, %r4, 4;\n"
                     "\tadd.s64 %rd9, %rd1, %rd8;\n\tld.global.f32 %f1, [%rd9];\n"
                     "\tld.global.u32 %r3, [%rd6];\n\tst.global.u32 [%rd7], %r3;\n")
                  .addresses,
              ElementsAre("idx", "y"))
      << "whatever the order of the instructions";
}

TEST(InputUses, ABoundedValueMayIndexATable) {
  EXPECT_THAT(UsesIn("\tld.global.u32 %r3, [%rd6];\n\tand.b32 %r4, %r3, 15;\n"
                     "\tmul.wide.s32 %rd8, %r4, 4;\n\tadd.s64 %rd9, %rd1, %rd8;\n"
                     "\tld.global.f32 %f1, [%rd9];\n")
                  .addresses,
              IsEmpty());
}

TEST(InputUses, ACountDecidesALoop) {
  const std::string loop =
      "\tld.global.u32 %r3, [%rd6];\n\tmov.u32 %r4, 0;\n$L_top:\n\tadd.s32 %r4, %r4, 1;\n"
      "\tsetp.lt.u32 %p1, %r4, %r3;\n\t@%p1 bra $L_top;\n";
  EXPECT_THAT(UsesIn(loop).loops, ElementsAre("idx"));
  EXPECT_THAT(UsesIn(loop).addresses, IsEmpty());
  const std::string leaves =
      "\tld.global.u32 %r3, [%rd6];\n\tmov.u32 %r4, 0;\n$L_top:\n\tsetp.ge.u32 %p1, %r4, %r3;\n"
      "\t@%p1 bra $L_out;\n\tadd.s32 %r4, %r4, 1;\n\tbra.uni $L_top;\n$L_out:\n";
  EXPECT_THAT(UsesIn(leaves).loops, ElementsAre("idx"));
}

TEST(InputUses, AFlagDecidesAndDataDoesNot) {
  const InputUses uses = UsesIn(
      "\tld.global.u32 %r3, [%rd6];\n\tsetp.eq.s32 %p1, %r3, 0;\n\t@%p1 bra $L_end;\n"
      "\tld.global.f32 %f1, [%rd5];\n\tmax.f32 %f2, %f1, 0f00000000;\n"
      "\tst.global.f32 [%rd7], %f2;\n$L_end:\n");
  EXPECT_THAT(uses.decisions, ElementsAre("idx"));
  EXPECT_THAT(uses.loops, IsEmpty());
  EXPECT_THAT(uses.addresses, IsEmpty());
}

TEST(InputUses, AreUnknownOfWhatCannotBeRead) {
  EXPECT_FALSE(FindInputUses({}, {}).known);
  EXPECT_FALSE(UsesIn("\tthis is no instruction\n").known);
}

}  // namespace
}  // namespace atunner
