#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "atunner/base/random.h"
#include "atunner/ptx/module.h"

namespace atunner::ptx {
namespace {

using testing::HasSubstr;

constexpr std::string_view kText = R"(
.version 9.0
.target sm_80
.address_size 64
	// .globl	f
.extern .shared .align 16 .b8 dyn[];
.global .align 4 .u32 table[3] = {1, 2, 0xff};
.const .align 4 .b8 filter[68];
.visible .entry f(
	.param .u64 .ptr .global .align 1 p0,
	.param .u8 p1,
	.param .align 8 .b8 p2[12],
	.param .f64 p3
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<9>;
	.reg .f32 	%f<3>;
	.reg .b64 	%rd<3>;
	.shared .align 8 .b8 s[100];
	.loc	1 12 3
	ld.param.u64 	%rd1, [p0];
	.loc	2 449 9, function_name $L__info_string0, inlined_at 1 6 3
	ld.global.nc.v4.f32 	{%f1, %f2, _, %f1}, [%rd1+-16];
	shfl.sync.bfly.b32 	%r1|%p1, %r2, 16, 31, -1;
	@!%p1 bra 	$L__BB0_2;
	mov.f32 	%f1, 0f3F800000;
$L__BB0_2:
	mov.u32 	%r3, %tid.x;
	st.shared.f32 	[s+4], %f1;
	ret;
}
	.file	1 "/tmp/mine.cu"
)";

// As ptxas allocates them: the compiler declares what two kernels share outside of both.
TEST(Parse, ModulesSharedVariablesBelongToFunctionsThatNameThem) {
  const auto module = Parse(R"(
.version 8.0
.target sm_80
.address_size 64
.shared .align 4 .b8 tile[4096];
.visible .entry one()
{
	.reg .b32 %r<2>;
	.shared .align 4 .b8 own[8];
	st.shared.u32 [own], %r1;
	ret;
}
.visible .entry two()
{
	.reg .b32 %r<2>;
	mov.u32 %r1, tile;
	st.shared.u32 [%r1], %r1;
	ret;
}
)");
  ASSERT_TRUE(module.has_value()) << module.error().ToString();
  EXPECT_EQ(module->Find("one")->shared_bytes, 8u);
  EXPECT_EQ(module->Find("one")->shared[0].offset, 0u);
  EXPECT_EQ(module->Find("two")->shared_bytes, 4096u);
}

TEST(Parse, ReadsWhatTheCompilerWrites) {
  const auto module = Parse(kText);
  ASSERT_TRUE(module.has_value()) << module.error().ToString();
  EXPECT_EQ(module->target(), "sm_80");
  EXPECT_EQ(module->SourceFile(1), "/tmp/mine.cu");
  ASSERT_EQ(module->globals().size(), 1u);
  EXPECT_EQ(module->globals()[0].initial.size(), 12u);
  EXPECT_EQ(module->globals()[0].initial[8], std::byte{0xff});
  EXPECT_EQ(module->constants()[0].bytes, 68u);
  const Function* f = module->Find("f");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->params[1].offset, 8u);
  EXPECT_EQ(f->params[2].offset, 16u);
  EXPECT_EQ(f->params[3].offset, 32u);
  EXPECT_EQ(f->shared_bytes, 100u);
  EXPECT_EQ(f->extern_shared, std::vector<std::string>{"dyn"});
  EXPECT_EQ(f->labels.at("$L__BB0_2"), 5u);
  const Instruction& load = f->body[1];
  EXPECT_EQ(load.Mnemonic(), "ld.global.nc.v4.f32");
  EXPECT_EQ(load.source_line, 6u) << "inlined code is reported where it was called";
  EXPECT_EQ(load.operands[0].elements.size(), 4u);
  EXPECT_EQ(load.operands[0].elements[2].kind, Operand::Kind::kSink);
  EXPECT_EQ(static_cast<int64_t>(load.operands[1].bits), -16);
  EXPECT_TRUE(f->body[2].operands[0].second.has_value());
  EXPECT_TRUE(f->body[3].guard_negated);
  EXPECT_TRUE(f->body[4].operands[1].is_single);
}

TEST(Parse, ErrorsNameTheLine) {
  EXPECT_THAT(
      Parse(".version 9.0\n.target sm_80\n.entry f() {\n bra nowhere;\n}").error().ToString(),
      HasSubstr("line 4"));
  EXPECT_THAT(Parse("hello").error().what, HasSubstr("hello"));
  EXPECT_FALSE(Parse("").has_value());
  EXPECT_THAT(
      Parse(".target sm_80\n.entry f() { .reg .b32 %r<2>; mov.b32 %r1, %q7; }").error().what,
      HasSubstr("%q7"));
}

TEST(Parse, AlignmentsArePowersOfTwo) {
  const auto error = Parse(".target sm_80\n\n.global .align 3 .b8 x[6];\n").error();
  EXPECT_EQ(error.what, "'.align 3': an alignment must be a power of two");
  EXPECT_EQ(error.where, "PTX line 3");
  EXPECT_FALSE(Parse(".target sm_80\n.global .align 0 .b8 x[6];").has_value());
  EXPECT_FALSE(
      Parse(".target sm_80\n.entry f(.param .u64 .ptr .global .align 12 p) { ret; }").has_value());
  EXPECT_FALSE(Parse(".target sm_80\n.entry f() { .local .align 6 .b8 x[6]; ret; }").has_value());
  EXPECT_TRUE(Parse(".target sm_80\n.global .align 16 .b8 x[6];").has_value());
}

TEST(Parse, TargetsAreKnownArchitectures) {
  const auto error = Parse(".version 9.0\n.target sm_999\n.address_size 64\n").error();
  EXPECT_THAT(error.what, HasSubstr("'.target sm_999': there is no such architecture"));
  EXPECT_EQ(error.where, "PTX line 2");
  EXPECT_FALSE(Parse(".target compute_80").has_value());
  for (const char* target : {"sm_50", "sm_90a", "sm_100a", "sm_121f"})
    EXPECT_TRUE(Parse(".target " + std::string(target) + ", debug\n").has_value()) << target;
}

TEST(Parse, DirectivesMayTouchTheirTypes) {
  EXPECT_TRUE(
      Parse(".target sm_80\n.entry f() { {.reg.b32 a,b; mov.b32 a, 1; mov.b32 b, a;} ret; }")
          .has_value());
}

TEST(Parse, WhatCannotBeMeantIsAnError) {
  EXPECT_FALSE(
      Parse(".target sm_80\n.entry f() { .reg .b32 a; add.u32 a, a 1; ret; }").has_value());
  EXPECT_FALSE(
      Parse(".target sm_80\n.entry f() { .reg .pred a; not.pred a, a+1; ret; }").has_value());
  EXPECT_THAT(Parse(".version 6.5\n.target sm_60\n.address_size 32\n").error().what,
              HasSubstr("32 bits"));
  EXPECT_TRUE(
      Parse(".target sm_80\n.entry f() { .reg .v4.u16 q; .reg.v2.u32 r; ret; }").has_value());
}

TEST(Parse, TheWarpSizeIsANumber) {
  const auto module = Parse(
      ".target sm_80\n.entry f() { .reg .b32 %r<2>; mov.u32 %r0, WARP_SZ; mov.u32 %r1, -WARP_SZ; "
      "ret; }");
  ASSERT_TRUE(module) << module.error().ToString();
  EXPECT_EQ(module->functions()[0].body[0].operands[1].bits, 32u);
  EXPECT_EQ(static_cast<int64_t>(module->functions()[0].body[1].operands[1].bits), -32);
}

uint64_t Constant(const std::string& expression) {
  const auto module = Parse(".target sm_80\n.entry f() { .reg .b64 %a; mov.u64 %a, " + expression +
                            "; ret; }");
  return module ? module->functions()[0].body[0].operands[1].bits : 0xBAD;
}

TEST(Parse, ConstantsAreExpressions) {
  const std::pair<const char*, uint64_t> cases[] = {
      {"2*3+1", 7},
      {"1+2*3", 7},
      {"(5-2)<<1", 6},
      {"5 > 3 ? 7 : 8", 7},
      {"0 ? 1 : 0 ? 2 : 3", 3},
      {"-1>>1", ~uint64_t{0}},
      {"(.u64)-1>>32", 0xffffffff},
      {"0xFFFFFFFFFFFFFFFFU/3", 0x5555555555555555},
      {"-7/2", static_cast<uint64_t>(-3)},
      {"-7 % 4", static_cast<uint64_t>(-3)},
      {"10==10&&3!=2", 1},
      {"1|6&3^1", 3},
      {"~0U<1", 0},
      {"!5", 0},
      {"+5", 5},
      {"0b101", 5},
      {"017", 15},
      {"WARP_SZ*2", 64},
      {"(-0x7fffffffffffffff-1)/-1", uint64_t{1} << 63}};
  for (const auto& [text, value] : cases) EXPECT_EQ(Constant(text), value) << text;
  EXPECT_EQ(std::bit_cast<double>(Constant(".5")), 0.5);
  EXPECT_EQ(std::bit_cast<double>(Constant("-(1.5)")), -1.5);
  for (const char* wrong : {"7/0", "7 % 0", "1.5+2", "~1.5", "(3", "1 ? 2", "1+", "*3", "-"})
    EXPECT_EQ(Constant(wrong), 0xBADu) << wrong;
  for (const char* nested : {"(", "-", "~", "1?", "0?1:"}) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += nested;
    EXPECT_EQ(Constant(text + "1"), 0xBADu) << nested;
  }
}

TEST(Parse, ExpressionsStandInAddressesSizesAndInitialValues) {
  const auto module = Parse(
      ".target sm_80\n.global .u32 x[2+2] = {1+2*3, (1<<4)|3, ~0U};\n.global .u64 y = x+4*2;\n"
      ".entry f() { .reg .b64 %a; .reg .b32 %r; ld.global.u32 %r, [x+4*2-1]; ld.global.u32 %r, "
      "[%a+-8]; "
      "mov.u64 %a, x+2*4; mov.b32 %r, %r+3; st.global.u32 [%a], %r - 1; "
      "st.global.v2.u32 [%a], {%r, %r+4}; ret; }");
  ASSERT_TRUE(module) << module.error().ToString();
  const Variable& x = module->globals()[0];
  EXPECT_EQ(x.bytes, 16u);
  EXPECT_EQ(x.initial[0], std::byte{7});
  EXPECT_EQ(x.initial[4], std::byte{19});
  EXPECT_EQ(x.initial[8], std::byte{0xff});
  EXPECT_EQ(module->globals()[1].initial[0], std::byte{8});
  const std::vector<Instruction>& body = module->functions()[0].body;
  EXPECT_EQ(body[0].operands[1].bits, 7u);
  EXPECT_EQ(static_cast<int64_t>(body[1].operands[1].bits), -8);
  EXPECT_EQ(body[2].operands[1].bits, 8u);
  ASSERT_EQ(body.size(), 10u);
  EXPECT_EQ(body[3].Mnemonic(), "add.u32");
  EXPECT_EQ(body[8].operands[1].elements[1].reg, body[7].operands[0].reg);
  EXPECT_EQ(body[3].operands[2].bits, 3u);
  EXPECT_EQ(body[4].operands[1].reg, body[3].operands[0].reg);
  EXPECT_EQ(static_cast<int64_t>(body[5].operands[2].bits), -1);
  EXPECT_EQ(body[6].operands[1].reg, body[5].operands[0].reg);
}

/// Written as the assembler writes it.
TEST(Parse, NamesAreDeclaredOnceInAScope) {
  const auto parses = [](const std::string& outside, const std::string& inside) {
    return Parse(".target sm_80\n" + outside +
                 "\n.visible .entry k(.param .u64 p) { .reg .u32 a; " + inside + " ret; }")
        .has_value();
  };
  for (const char* twice :
       {".reg .u32 a;", ".reg .u32 p;", ".reg .u32 %r<3>; .reg .u32 %r2;",
        ".shared .u32 x; .local .u32 x;", "L: L:", ".reg .u32 L; L:", "L: .reg .u32 L;",
        ".shared .u32 a;", ".reg .v2 .u32 q; .reg .u32 q.x;"})
    EXPECT_FALSE(parses("", twice)) << twice;
  for (const char* twice :
       {".global .u32 x; .global .u32 x;", ".weak .global .u32 x; .weak .global .u32 x;",
        ".func x() { ret; } .global .u32 x;", ".global .u32 k;",
        ".func f() { ret; } .entry f() { ret; }",
        ".weak .func f() { ret; } .weak .func f() { ret; }", ".func f() { ret; } .func f();",
        ".entry f(.param .u64 q, .param .u64 q) { ret; }", ".entry k() { ret; }",
        ".func f(.param .u32 q); .func f(.param .u64 q) { ret; }",
        ".extern .global .u32 x; .global .u32 x;",
        ".extern .global .u32 x; .visible .global .u64 x;",
        ".extern .global .u32 x; .visible .global .s32 x;",
        ".extern .global .u32 x[4]; .visible .global .u32 x[8];",
        ".extern .shared .b8 x[]; .extern .shared .b32 x[];",
        ".extern .func f(); .visible .func f() { ret; }"})
    EXPECT_FALSE(parses(twice, "")) << twice;
  for (const char* inside :
       {"{ .reg .u32 a; { .reg .u32 a; } }", "{ .reg .u32 b; } { .reg .u32 b; }",
        "{ L: bra L; } L:", ".shared .u32 s; { .shared .u32 t; }"})
    EXPECT_TRUE(parses("", inside)) << inside;
  for (const char* outside :
       {".func f(); .func f(); .func f() { ret; }",
        ".extern .global .u32 x; .extern .global .u32 x;", ".global .u32 p; .global .u32 a;",
        ".shared .u32 s;", ".extern .global .u32 x[]; .visible .global .u32 x[8];",
        ".extern .shared .align 16 .b8 d[]; .extern .shared .align 16 .b8 d[];"})
    EXPECT_TRUE(
        parses(outside, outside == std::string_view(".shared .u32 s;") ? ".shared .u32 s;" : ""))
        << outside;
  const auto declared = Parse(
      ".target sm_80\n.extern .global .u32 x;\n.visible .global .u32 x = 7;");
  ASSERT_TRUE(declared);
  ASSERT_EQ(declared->globals().size(), 1u);
  EXPECT_EQ(declared->globals()[0].initial[0], std::byte{7});
}

TEST(Parse, ListsOfBranchesBelongToTheirScope) {
  const auto module = Parse(R"(.target sm_80
.entry k() {
  .reg .u32 i;
  out:
  { t: .branchtargets a, out; brx.idx i, t; a: ret; }
  { t: .branchtargets a, a; { brx.idx i, t; } ret; a: ret; }
})");
  ASSERT_TRUE(module) << module.error().ToString();
  const Function& k = module->functions()[0];
  std::vector<uint32_t> places;
  for (const Instruction& instruction : k.body) {
    if (instruction.opcode != "brx") continue;
    for (const std::string& target : k.branch_targets.at(instruction.operands[1].name))
      places.push_back(k.labels.at(target));
  }
  EXPECT_EQ(places, (std::vector<uint32_t>{1, 0, 4, 4}));
}

TEST(Parse, NumbersAreSpelledAsTheAssemblerHasThem) {
  EXPECT_EQ(std::bit_cast<double>(Constant("1e5")), 1e5);
  EXPECT_EQ(std::bit_cast<double>(Constant("1E-5")), 1e-5);
  EXPECT_EQ(std::bit_cast<double>(Constant("-(1.5e+3)")), -1500);
  EXPECT_EQ(std::bit_cast<double>(Constant("1.e2")), 100);
  EXPECT_EQ(Constant("0x1e5"), 0x1e5u);
  EXPECT_EQ(Constant("0x1e-5"), 0x1e - 5u);
  EXPECT_EQ(Constant("077"), 63u);
  EXPECT_EQ(Constant("0U"), 0u);
  for (const std::string wrong : {"1e", "5u", "09", "0xg", "12abc", "1.0f", "0f3f80", "0f3f8000000",
                                  "0d3ff", "0b12", "99999999999999999999", "1e400"})
    EXPECT_FALSE(
        Parse(".target sm_80\n.entry f() { .reg .b64 a; mov.b64 a, " + wrong + "; }").has_value())
        << wrong;
}

TEST(Parse, InitialValuesAreOfTheirType) {
  const auto parses = [](const std::string& variable) {
    return Parse(".target sm_80\n" + variable).has_value();
  };
  for (const char* wrong :
       {".global .f32 x = 1;", ".global .u32 x = 1.5;", ".global .s64 x = 0d3ff0000000000000;",
        ".global .f32 x[2] = {0f3f800000, 3};"})
    EXPECT_FALSE(parses(wrong)) << wrong;
  for (const char* right : {".global .b32 x = 0f3f800000;", ".global .b16 x[2] = {1, 2};",
                            ".global .f64 x = 0f3f800000;"})
    EXPECT_TRUE(parses(right)) << right;
}

TEST(Parse, CutOffAndEndlessTextsAreErrors) {
  const std::string head = ".version 9.0\n.target sm_80\n.entry f() {\n";
  for (const char* rest :
       {"", ".reg", ".reg .v2", ".reg .", ".reg b32", ".shared", ".shared .", ".loc", "@", "bra",
        "mov.b32 {", "mov.b32 [", ".branchtargets", "x:", ".shared .align", "mov.b32 !"})
    EXPECT_FALSE(Parse(head + rest).has_value()) << rest;
  for (const char* nested : {"{", "!", "(", "[a,"}) {
    std::string text = head + "mov.b32 ";
    for (int i = 0; i < 100000; ++i) text += nested;
    EXPECT_FALSE(Parse(text).has_value()) << nested;
  }
}

TEST(Parse, ArraysBeyondMemoryAreErrors) {
  const std::string head = ".version 9.0\n.target sm_80\n";
  EXPECT_TRUE(Parse(head + ".global .b32 x[4] = {1, 2};").has_value());
  EXPECT_FALSE(Parse(head + ".global .b8 x[17179869184] = {1};").has_value());
  EXPECT_FALSE(Parse(head + ".global .b8 x[17179869184][17179869184];").has_value())
      << "the product is 2^68";
}

TEST(Parse, SurvivesDamage) {
  Random random(5);
  for (int i = 0; i < 4000; ++i) {
    std::string damaged(kText);
    for (int k = 0; k < 3; ++k) {
      const size_t at = random.Below(damaged.size());
      switch (random.Below(3)) {
        case 0:
          damaged[at] = static_cast<char>(32 + random.Below(95));
          break;
        case 1:
          damaged.erase(at, 1 + random.Below(20));
          break;
        default:
          damaged.insert(at, damaged.substr(random.Below(damaged.size()), 10));
      }
    }
    (void)Parse(damaged);
  }
}

}  // namespace
}  // namespace atunner::ptx
