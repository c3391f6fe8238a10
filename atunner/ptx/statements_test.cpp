#include "atunner/ptx/statements.h"

#include <gmock/gmock.h>

#include <functional>

namespace atunner::ptx {
namespace {

constexpr std::string_view kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

TextModule Read(const std::string& text) {
  auto module = Statements(text);
  EXPECT_TRUE(module.has_value()) << module.error().ToString();
  return module ? *std::move(module) : TextModule{};
}

const std::string kKernel = std::string(kHead) +
                            R"(.global .align 4 .f32 table[2] = {0f3F800000, 0f40000000};
.visible .entry k(
	.param .u64 out
)
.maxntid 128, 1, 1
{
	.reg .pred 	%p<3>;
	.reg .f32 	%f<4>;
	.reg .b32 	%r<4>;
	.reg .b64 	%rd<3>;
	.local .align 8 .b8 	depot[24];
	ld.param.u64 	%rd1, [out];
	// begin inline asm
	{ .reg .b16 %r1, h;
	  mov.b32 {%r1, h}, %r2; }
	// end inline asm
$L__loop:
	@!%p1 fma.rn.f32 %f1, %f2, 0f3F800000, %f3; add.s32 %r1, %r1, -1;
	shfl.sync.bfly.b32 	%r2|%p2, %r1, 1, 31, -1;
	st.global.v2.f32 	[%rd1+-8], {%f1, _};
	bra 	$L__loop;
}
)";

TEST(Statements, InstructionsKnowTheirPlaces) {
  const TextModule module = Read(kKernel);
  ASSERT_EQ(module.functions.size(), 1u);
  const TextFunction& k = module.functions[0];
  EXPECT_EQ(k.name, "k");
  EXPECT_TRUE(k.is_entry);
  EXPECT_THAT(k.directives, testing::Contains(".maxntid"));
  ASSERT_EQ(k.body.size(), 7u);
  const auto slice = [&](size_t i) {
    return kKernel.substr(k.body[i].begin, k.body[i].end - k.body[i].begin);
  };
  EXPECT_EQ(slice(2), "@!%p1 fma.rn.f32 %f1, %f2, 0f3F800000, %f3;");
  EXPECT_EQ(slice(3), "add.s32 %r1, %r1, -1;");
  EXPECT_EQ(k.body[2].guard, "@!%p1 ");
  EXPECT_EQ(k.body[2].Mnemonic(), "fma.rn.f32");
  EXPECT_EQ(k.body[2].line, k.body[3].line);
  ASSERT_EQ(k.local.size(), 1u);
  EXPECT_EQ(k.local[0].bytes, 24u);
  EXPECT_EQ(kKernel[k.head], '{');
  EXPECT_EQ(kKernel.substr(module.variables - 2, 2), "64");
}

TEST(Statements, OperandsAreWhatTheTextSays) {
  const TextModule module = Read(kKernel);
  const std::vector<TextInstruction>& body = module.functions[0].body;
  const auto& fma = body[2].operands;
  EXPECT_EQ(fma[2].kind, TextOperand::Kind::kConstant);
  EXPECT_EQ(fma[2].text, "0f3F800000");
  EXPECT_EQ(body[3].operands[2].text, "-1");
  EXPECT_EQ(body[3].operands[2].kind, TextOperand::Kind::kConstant);
  EXPECT_GE(body[4].operands[0].second, 0);
  const TextOperand& address = body[5].operands[0];
  EXPECT_EQ(address.kind, TextOperand::Kind::kAddress);
  EXPECT_EQ(address.base, "%rd1");
  EXPECT_EQ(address.offset, "+-8");
  EXPECT_EQ(body[5].operands[1].elements[1].kind, TextOperand::Kind::kSink);
}

TEST(Statements, RegistersOfInnerScopesAreOthers) {
  const TextModule module = Read(kKernel);
  const TextFunction& k = module.functions[0];
  const int inner = k.body[1].operands[0].elements[0].reg;
  const int outer = k.body[3].operands[0].reg;
  EXPECT_EQ(k.registers[static_cast<size_t>(inner)].name, "%r1");
  EXPECT_EQ(k.registers[static_cast<size_t>(outer)].name, "%r1");
  EXPECT_EQ(k.registers[static_cast<size_t>(inner)].type, Type::kB16);
  EXPECT_EQ(k.registers[static_cast<size_t>(outer)].type, Type::kB32);
}

/// Every instruction that Parse sees has a place.
TEST(Statements, FindAllInstructionsOfParse) {
  const TextModule module = Read(kKernel);
  const ValidModule parsed = Parse(kKernel).value();
  ASSERT_EQ(module.functions[0].body.size(), parsed.functions()[0].body.size());
  for (size_t i = 0; i < module.functions[0].body.size(); ++i) {
    EXPECT_EQ(module.functions[0].body[i].Mnemonic(), parsed.functions()[0].body[i].Mnemonic());
    EXPECT_EQ(module.functions[0].body[i].line, parsed.functions()[0].body[i].line);
  }
}

TEST(Statements, RefuseWhatTheyCannotRead) {
  EXPECT_EQ(Statements("nonsense").error().code, ErrorCode::kInvalidInput);
  std::string text(kHead);
  text += ".func f(.reg .b32 a)\n{\n\tret;\n}\n";
  const auto refused = Statements(text);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().where, "PTX line 4");
}

}  // namespace
}  // namespace atunner::ptx
