// How machine code is matched with the PTX that it comes from.
#include "atunner/vgpu/timing/sass_schedule.h"

#include <gtest/gtest.h>

namespace atunner::vgpu {
namespace {

constexpr uint16_t kAdd = 0x021, kLoad = 0x181, kBranch = 0x147, kCall = 0x144, kReturn = 0x150,
                   kExit = 0x14d;

MachineInstruction At(uint32_t line, uint16_t opcode,
                      uint32_t target = MachineInstruction::kNowhere) {
  MachineInstruction instruction;
  instruction.opcode = opcode;
  instruction.line = line;
  instruction.stall = 4;
  instruction.target = target;
  instruction.conditional = opcode == kBranch;
  return instruction;
}

/// Line 1: before the loop. Lines 2 to 4: the loop, a load, an addition, a branch. Line 5: ret.
std::vector<ScheduledOp> Loop() {
  std::vector<ScheduledOp> ops(5);
  for (uint32_t i = 0; i < ops.size(); ++i) ops[i].line = i + 1;
  ops[1].single = ops[2].single = true;
  ops[3].target = 1;
  ops[3].last = ops[3].control = ops[4].last = ops[4].control = true;
  return ops;
}

TEST(SassSchedule, PartsEndWhereTheFlowChanges) {
  const SassSchedule schedule = MakeSchedule(
      {At(1, kAdd), At(2, kLoad), At(3, kAdd), At(4, kBranch, 1), At(5, kExit)}, Loop());
  EXPECT_EQ(schedule.part_of, (std::vector<uint32_t>{0, 1, 1, 1, 2}));
  ASSERT_EQ(schedule.parts.size(), 3u);
  ASSERT_EQ(schedule.parts[1].runs.size(), 1u);
  const MachineRun& body = schedule.runs[schedule.parts[1].runs[0][0]];
  EXPECT_EQ(body.steps.size(), 3u);
  EXPECT_EQ(body.copies, 1u);
  EXPECT_EQ(body.depth, 1u);
  EXPECT_EQ(body.steps[0].wait, Wait::kMemory);
}

TEST(SassSchedule, AnUnrolledLoopHasItsRestBesideIt) {
  const MachineCode code = {At(1, kAdd),       At(2, kLoad),      At(2, kLoad), At(3, kAdd),
                            At(3, kAdd),       At(4, kBranch, 1), At(2, kLoad), At(3, kAdd),
                            At(4, kBranch, 6), At(5, kExit)};
  const SassSchedule schedule = MakeSchedule(code, Loop());
  const SassSchedule::Part& part = schedule.parts[1];
  EXPECT_EQ(part.copies, 2u);
  ASSERT_EQ(part.runs.size(), 1u) << "the rest is an alternative, it does not follow";
  ASSERT_EQ(part.runs[0].size(), 2u);
  EXPECT_EQ(schedule.runs[part.runs[0][0]].copies, 2u) << "the most copies first";
  EXPECT_EQ(schedule.runs[part.runs[0][1]].copies, 1u);
}

// `nvcc` enters an unrolled loop so: a check first, which shares no line with what the loop does
// between its ends.
TEST(SassSchedule, ACheckBeforeALoopPartsNoAlternatives) {
  const MachineCode code = {At(1, kAdd),  At(4, kAdd),       At(4, kBranch, 10), At(2, kLoad),
                            At(3, kAdd),  At(2, kLoad),      At(3, kAdd),        At(2, kLoad),
                            At(3, kAdd),  At(4, kBranch, 3), At(2, kLoad),       At(3, kAdd),
                            At(2, kLoad), At(3, kAdd),       At(4, kBranch, 17), At(2, kLoad),
                            At(3, kAdd),  At(5, kExit)};
  const SassSchedule schedule = MakeSchedule(code, Loop());
  const SassSchedule::Part& part = schedule.parts[1];
  EXPECT_EQ(part.copies, 3u);
  ASSERT_EQ(part.runs.size(), 1u);
  EXPECT_EQ(schedule.runs[part.runs[0][0]].copies, 3u);
}

// The slow halves of waits stand behind the kernel and jump back into it. Before they were told
// from loops, what stands between two waits seemed to belong to the second one's loop, and was
// never issued.
TEST(SassSchedule, WhatLiesBetweenTwoWaitsIsInNoLoop) {
  std::vector<ScheduledOp> ops(8);  // lines 2 and 7: waits; 3 to 6: what lies between
  for (uint32_t i = 0; i < ops.size(); ++i) ops[i].line = i + 1;
  for (const uint32_t wait : {1u, 6u}) {
    ops[wait].target = wait;
    ops[wait].last = ops[wait].control = true;
  }
  ops[7].last = ops[7].control = ops[7].always = ops[7].ends = true;
  MachineCode code = {At(1, kAdd),        At(2, kBranch, 8), At(3, kLoad),       At(4, kLoad),
                      At(5, kAdd),        At(6, kAdd),       At(7, kBranch, 11), At(8, kExit),
                      At(2, kAdd),        At(2, kBranch, 8), At(2, kBranch, 2),  At(7, kAdd),
                      At(7, kBranch, 11), At(7, kBranch, 7)};
  for (const size_t always : {10u, 13u}) code[always].conditional = false;
  const SassSchedule schedule = MakeSchedule(code, ops);
  const uint32_t between = schedule.part_of[3];
  ASSERT_EQ(schedule.parts[between].runs.size(), 1u);
  const MachineRun& run = schedule.runs[schedule.parts[between].runs[0][0]];
  EXPECT_EQ(run.steps.size(), 5u);
  EXPECT_EQ(run.depth, 0u);
}

// The slow half of a wait that ends a part is a loop of its own, and no alternative to the part.
TEST(SassSchedule, ASlowHalfStandsForNoPart) {
  std::vector<ScheduledOp> ops(5);
  for (uint32_t i = 0; i < ops.size(); ++i) ops[i].line = i + 1;
  ops[3].last = ops[3].control = ops[4].last = ops[4].control = ops[4].always = ops[4].ends = true;
  ops[3].target = 4;
  MachineCode code = {At(1, kAdd),  At(2, kAdd), At(3, kLoad),      At(4, kBranch, 5),
                      At(5, kExit), At(4, kAdd), At(4, kBranch, 5), At(4, kBranch, 4)};
  code[7].conditional = false;
  const SassSchedule schedule = MakeSchedule(code, ops);
  ASSERT_FALSE(schedule.parts[0].runs.empty());
  EXPECT_EQ(schedule.runs[schedule.parts[0].runs[0][0]].steps.size(), 4u);
}

TEST(SassSchedule, ATileOfSeveralInstructionsIsNotUnrolled) {
  std::vector<ScheduledOp> ops = Loop();
  ops[1].single = false;  // wmma.load: four of them
  const MachineCode code = {At(1, kAdd),  At(2, kLoad), At(2, kLoad),      At(2, kLoad),
                            At(2, kLoad), At(3, kAdd),  At(4, kBranch, 1), At(5, kExit)};
  const SassSchedule schedule = MakeSchedule(code, ops);
  const MachineRun& body = schedule.runs[schedule.parts[1].runs[0][0]];
  EXPECT_EQ(body.copies, 1u);
  EXPECT_EQ(body.steps[0].shares, 4u) << "each does a quarter of the access";
}

TEST(SassSchedule, WhatIsMovedOutOfALoopRunsOnce) {
  // An addition of the loop that does not change stands before it, more than what was there.
  std::vector<ScheduledOp> ops = Loop();
  const MachineCode code = {At(1, kAdd),  At(3, kAdd),       At(3, kAdd), At(1, kBranch, 4),
                            At(2, kLoad), At(4, kBranch, 4), At(5, kExit)};
  const SassSchedule schedule = MakeSchedule(code, ops);
  const SassSchedule::Part& loop = schedule.parts[1];
  ASSERT_EQ(loop.runs.size(), 1u);
  EXPECT_EQ(schedule.runs[loop.runs[0][0]].steps.size(), 2u);
  ASSERT_EQ(schedule.parts[0].runs.size(), 1u);
  EXPECT_EQ(schedule.runs[schedule.parts[0].runs[0][0]].steps.size(), 4u);
}

TEST(SassSchedule, FewInstructionsDoNotWinByTheirLoops) {
  // The body of a loop that the machine code goes through once, with one instruction of what
  // precedes it.
  std::vector<ScheduledOp> ops(12);
  for (uint32_t i = 0; i < ops.size(); ++i) ops[i].line = i + 1;
  ops[10].target = 1;
  ops[10].last = ops[10].control = ops[11].last = ops[11].control = true;
  MachineCode code;
  for (uint32_t line = 1; line <= 10; ++line) code.push_back(At(line, kAdd));
  code.push_back(At(12, kExit));
  const SassSchedule schedule = MakeSchedule(code, ops);
  ASSERT_EQ(schedule.parts.size(), 3u);
  EXPECT_TRUE(schedule.parts[0].runs.empty());
  ASSERT_EQ(schedule.parts[1].runs.size(), 1u);
}

TEST(SassSchedule, ARunEndsWithItsOwnBarrier) {
  // Line 2: what is waited for before the barrier in line 3. The assembler moves additions of line
  // 4 ahead of it.
  constexpr uint16_t kBar = 0x11d;
  std::vector<ScheduledOp> ops = Loop();
  ops[2].last = true;
  ops[3].target = ScheduledOp::kNowhere;
  ops[3].last = ops[3].control = false;
  const MachineCode code = {At(1, kAdd),  At(4, kAdd), At(4, kAdd), At(4, kAdd), At(4, kAdd),
                            At(2, kLoad), At(3, kBar), At(4, kAdd), At(5, kExit)};
  const SassSchedule schedule = MakeSchedule(code, ops);
  const uint32_t meeting = schedule.part_of[2];
  ASSERT_EQ(schedule.parts[meeting].runs.size(), 1u);
  EXPECT_EQ(schedule.runs[schedule.parts[meeting].runs[0][0]].steps.back().instruction.opcode,
            kBar);
  EXPECT_NE(schedule.part_of[3], meeting);
}

TEST(SassSchedule, AddressesOfACopyAreNoCopies) {
  // The line of one load has three more instructions, which do nothing or make its address.
  constexpr uint16_t kNop = 0x118, kMultiply = 0x024, kInteger = 0x010;
  const MachineCode code = {At(1, kAdd),  At(2, kMultiply), At(2, kInteger),   At(2, kNop),
                            At(2, kLoad), At(3, kAdd),      At(4, kBranch, 1), At(5, kExit)};
  const SassSchedule schedule = MakeSchedule(code, Loop());
  const MachineRun& body = schedule.runs[schedule.parts[1].runs[0][0]];
  EXPECT_EQ(body.copies, 1u);
  EXPECT_EQ(body.steps.size(), 6u) << "what does nothing takes its turn";
  EXPECT_EQ(body.uses[static_cast<size_t>(Pipe::kLsu)], 1u);
}

TEST(SassSchedule, SlowPathsAreLeftOut) {
  // A division in line 3 jumps over the call of its slow path, which stands behind the kernel.
  const MachineCode code = {At(1, kAdd),  At(2, kLoad),    At(3, kAdd),   At(3, kBranch, 6),
                            At(3, kAdd),  At(3, kCall, 9), At(3, kAdd),   At(4, kBranch, 1),
                            At(5, kExit), At(5, kAdd),     At(5, kReturn)};
  const SassSchedule schedule = MakeSchedule(code, Loop());
  ASSERT_EQ(schedule.parts[1].runs.size(), 1u);
  const MachineRun& body = schedule.runs[schedule.parts[1].runs[0][0]];
  EXPECT_EQ(body.steps.size(), 5u);
  EXPECT_TRUE(body.steps[2].taken);
  size_t all = 0;
  for (const MachineRun& run : schedule.runs) all += run.steps.size();
  EXPECT_EQ(all, 7u);
}

TEST(SassSchedule, ALoopMayEndWithACallThatNeverReturns) {
  // The assembler leaves large loops by a call of the code behind them, over the backward branch.
  MachineInstruction leave = At(4, kCall, 5);
  leave.conditional = true;
  const MachineCode code = {At(1, kAdd), At(2, kLoad),      At(3, kAdd),
                            leave,       At(4, kBranch, 1), At(5, kExit)};
  const SassSchedule schedule = MakeSchedule(code, Loop());
  ASSERT_EQ(schedule.parts[1].runs.size(), 1u);
  const MachineRun& body = schedule.runs[schedule.parts[1].runs[0][0]];
  EXPECT_EQ(body.steps.size(), 3u);
  EXPECT_EQ(body.depth, 1u);
  size_t all = 0;
  for (const MachineRun& run : schedule.runs) all += run.steps.size();
  EXPECT_EQ(all, 6u) << "nothing is left out";
}

TEST(SassSchedule, SpillsAreNoOperationsOfTheirLine) {
  constexpr uint16_t kLocalLoad = 0x183, kLocalStore = 0x187;
  MachineInstruction wide = At(3, kLocalLoad);
  wide.words = 4;
  const MachineCode code = {At(1, kAdd), At(2, kLoad),      At(2, kLocalStore),
                            wide,        At(3, kAdd),       At(3, kLocalStore),
                            wide,        At(4, kBranch, 1), At(5, kExit)};
  std::vector<ScheduledOp> ops = Loop();
  const auto body = [&] {
    const SassSchedule schedule = MakeSchedule(code, ops);
    return schedule.runs[schedule.parts[1].runs[0][0]];
  };
  EXPECT_EQ(body().spilled_words, 10u);
  EXPECT_EQ(body().copies, 1u) << "the loop is not unrolled";
  ops[2].local = true;
  EXPECT_EQ(body().spilled_words, 1u) << "an operation on local memory is no spill";
}

TEST(SassSchedule, BranchesWithoutPredicateBecomeNone) {
  // Line 1 goes over line 2 to the loop of lines 3 and 4, and the assembler has put them in a row.
  // In the loop it makes an operand of line 1 again.
  std::vector<ScheduledOp> ops(5);
  for (uint32_t i = 0; i < ops.size(); ++i) ops[i].line = i + 1;
  ops[0].target = 2, ops[3].target = 2;
  ops[0].last = ops[0].control = ops[3].last = ops[3].control = ops[4].last = ops[4].control = true;
  ops[0].always = true;
  const MachineCode code = {At(1, kAdd), At(1, kAdd), At(3, kAdd), At(4, kBranch, 1), At(5, kExit)};
  const SassSchedule schedule = MakeSchedule(code, ops);
  const SassSchedule::Part& loop = schedule.parts[schedule.part_of[2]];
  ASSERT_EQ(loop.runs.size(), 1u);
  EXPECT_EQ(schedule.runs[loop.runs[0][0]].steps.size(), 3u);
}

TEST(SassSchedule, ProductsKeepTheirOrder) {
  // wgmma of lines 2 and 3, which the line table gives to others of their part.
  constexpr uint16_t kProduct = 0x1f0;
  std::vector<ScheduledOp> ops = Loop();
  ops[1].product = ops[2].product = true;
  const MachineCode code = {At(1, kAdd),     At(4, kProduct), At(3, kProduct),   At(3, kProduct),
                            At(2, kProduct), At(3, kAdd),     At(4, kBranch, 1), At(5, kExit)};
  const SassSchedule schedule = MakeSchedule(code, ops);
  const MachineRun& body = schedule.runs[schedule.parts[1].runs[0][0]];
  std::vector<uint32_t> of;
  for (size_t i = 0; i < 4; ++i) of.push_back(body.steps[i].op);
  EXPECT_EQ(of, (std::vector<uint32_t>{1, 2, 1, 2}));
  EXPECT_EQ(body.steps[4].op, 2u) << "an addition keeps its line's";
}

TEST(SassSchedule, WithoutLinesThereIsNone) {
  EXPECT_TRUE(MakeSchedule({At(0, kAdd), At(0, kExit)}, Loop()).empty());
  EXPECT_TRUE(MakeSchedule({}, Loop()).empty());
}

}  // namespace
}  // namespace atunner::vgpu
