#include "atunner/vgpu/decode/register_slots.h"

#include <gtest/gtest.h>

#include "atunner/vgpu/analysis/body_flow.h"

namespace atunner::vgpu {
namespace {

ptx::ValidModule Parsed(const std::string& body) {
  return ptx::Parse(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n" +
                    body + "\n}\n")
      .value();
}

class RegisterSlotsTest : public testing::Test {
 protected:
  void Assign(const std::string& body) {
    module_.emplace(Parsed(body));
    slots_ = AssignSlots(*module_->Find("k"), 1, true);
  }
  int32_t SlotOf(const std::string& name) const {
    const auto& registers = module_->Find("k")->registers;
    for (size_t i = 0; i < registers.size(); ++i) {
      if (registers[i].name == name) return slots_.first[i];
    }
    ADD_FAILURE() << "no register " << name;
    return -1;
  }
  std::optional<ptx::ValidModule> module_;
  RegisterSlots slots_;
};

TEST_F(RegisterSlotsTest, RegistersThatAreNeverInUseTogetherShare) {
  Assign(R"(
    .reg .b32 %r<5>;
    mov.u32 %r1, 1;
    add.u32 %r2, %r1, 1;
    add.u32 %r3, %r2, 1;
    add.u32 %r4, %r3, 1;
    ret;)");
  EXPECT_EQ(SlotOf("%r1"), SlotOf("%r3"));
  EXPECT_EQ(SlotOf("%r2"), SlotOf("%r4"));
  // an operation's result never lies where its operands do
  EXPECT_NE(SlotOf("%r1"), SlotOf("%r2"));
}

TEST_F(RegisterSlotsTest, LanesLieDifferentlyInRegistersOfOtherWidths) {
  Assign(R"(
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    mov.u64 %rd1, 1;
    cvt.u32.u64 %r1, %rd1;
    setp.eq.u32 %p1, %r1, 1;
    selp.u32 %r2, 1, 2, %p1;
    cvt.u64.u32 %rd2, %r2;
    setp.eq.u64 %p2, %rd2, 1;
    @%p2 trap;
    ret;)");
  EXPECT_EQ(SlotOf("%rd1"), SlotOf("%rd2"));
  EXPECT_NE(SlotOf("%r1"), SlotOf("%rd1"));
  EXPECT_NE(SlotOf("%r1"), SlotOf("%rd1") + 1);
  EXPECT_NE(SlotOf("%p1"), SlotOf("%rd1"));
  EXPECT_NE(SlotOf("%p1"), SlotOf("%r1"));
}

TEST_F(RegisterSlotsTest, WhatALoopKeepsIsNotOverwrittenInIt) {
  Assign(R"(
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    mov.u32 %r1, 0;
    mov.u32 %r2, 7;
AGAIN:
    add.u32 %r3, %r1, 1;
    mov.u32 %r1, %r3;
    setp.lt.u32 %p1, %r1, %r2;
    @%p1 bra AGAIN;
    mov.u32 %r4, %r1;
    ret;)");
  EXPECT_NE(SlotOf("%r2"), SlotOf("%r3"));
  EXPECT_NE(SlotOf("%r1"), SlotOf("%r3"));
}

TEST_F(RegisterSlotsTest, AGuardedWriteKeepsTheOldValue) {
  Assign(R"(
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    mov.u32 %r1, 1;
    mov.u32 %r2, 5;
    setp.eq.u32 %p1, %r2, 5;
    mov.u32 %r3, 3;
    @%p1 mov.u32 %r1, %r3;
    mov.u32 %r4, %r1;
    ret;)");
  EXPECT_NE(SlotOf("%r1"), SlotOf("%r2"));
  EXPECT_NE(SlotOf("%r1"), SlotOf("%r3"));
}

TEST_F(RegisterSlotsTest, WhatMayBeReadBeforeItIsWrittenStaysAlone) {
  Assign(R"(
    .reg .b32 %r<4>;
    add.u32 %r2, %r1, 1;
    mov.u32 %r3, 1;
    ret;)");
  EXPECT_NE(SlotOf("%r1"), SlotOf("%r3"));
}

TEST(BodyFlow, BlocksEndAtBranchesAndBeginAtLabels) {
  const ptx::ValidModule module = Parsed(R"(
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    setp.eq.u32 %p1, 1, 1;
    @%p1 bra OUT;
    mov.u32 %r1, 1;
OUT:
    ret;)");
  const std::vector<BasicBlock> blocks = BlocksOf(*module.Find("k"));
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0].next, (std::vector<size_t>{2, 1}));
  EXPECT_EQ(blocks[1].next, std::vector<size_t>{2});
  EXPECT_TRUE(blocks[2].next.empty());
}

}  // namespace
}  // namespace atunner::vgpu
