// Which part of a kernel decides how much work its blocks do.
#include "atunner/vgpu/analysis/work_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atunner::vgpu {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

constexpr uint64_t kX = 4096, kY = 8192, kCounter = 12288;

WorkSlice Slice(const std::string& body, KeptBranches branches = KeptBranches::kThatDiffer) {
  const auto module = ptx::Parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 counter;\n"
      ".visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)\n{\n"
      ".reg .pred %p<8>;\n.reg .b32 %r<16>;\n.reg .b64 %d<8>;\n.shared .b32 s;\n" +
      body + "}\n");
  EXPECT_TRUE(module) << module.error().ToString();
  return SliceOf(module->functions()[0], branches, [](const std::string& name, uint64_t) {
    return name == "x" ? kX : name == "y" ? kY : name == "counter" ? kCounter : 0;
  });
}

/// Opcodes of the slice without the instructions that count its blocks.
std::vector<std::string> Opcodes(const WorkSlice& slice) {
  std::vector<std::string> opcodes;
  for (size_t i = 0; i < slice.function.body.size(); ++i) {
    if (slice.weights[i] == 0) opcodes.push_back(slice.function.body[i].opcode);
  }
  return opcodes;
}

const std::string kIndex =
    "ld.param.u64 %d0, [x];\nld.param.u64 %d1, [y];\nld.param.u32 %r0, [n];\n"
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\n";

TEST(WorkSlice, BlocksWithoutBranchesOnTheirIndexAreAlike) {
  EXPECT_TRUE(Slice(kIndex + "st.global.u32 [%d1], %r1;\nret;\n").alike);
  EXPECT_TRUE(Slice(kIndex + "LOOP:\nadd.u32 %r2, %r2, 32;\nsetp.lt.u32 %p0, %r2, %r0;\n"
                             "@%p0 bra LOOP;\nst.global.u32 [%d1], %r1;\nret;\n")
                  .alike)
      << "the threads of each block";
  EXPECT_TRUE(Slice(kIndex + "ld.global.u32 %r3, [%d0];\nsetp.eq.u32 %p0, %r3, 7;\n"
                             "@%p0 bra END;\nst.global.u32 [%d1], %r1;\nEND:\nret;\n")
                  .alike)
      << "a value that all blocks read, and none writes";
}

/// What runs is the comparison; the loop that all blocks do alike is jumped over.
TEST(WorkSlice, KeepsTheComparisonWithTheIndex) {
  const WorkSlice slice = Slice(
      kIndex +
      "setp.ge.u32 %p0, %r1, %r0;\n@%p0 bra END;\nmov.u32 %r3, 0;\n"
      "LOOP:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 64;\n@%p1 bra LOOP;\n"
      "st.global.u32 [%d1], %r3;\nEND:\nret;\n");
  EXPECT_EQ(slice.unknown, "");
  EXPECT_FALSE(slice.alike || slice.reads_memory || slice.shares_memory);
  EXPECT_THAT(Opcodes(slice), ElementsAre("ld", "mov", "setp", "bra", "ret"));
}

TEST(WorkSlice, KeepsLoopsThatTheIndexBounds) {
  const std::string loop = kIndex +
                           "mov.u32 %r3, 0;\nLOOP:\nadd.u32 %r3, %r3, 1;\n"
                           "mul.lo.u32 %r4, %r4, %r4;\nsetp.lt.u32 %p1, %r3, %r1;\n@%p1 bra LOOP;\n"
                           "st.global.u32 [%d1], %r4;\nret;\n";
  EXPECT_THAT(Opcodes(Slice(loop)), Contains("add"));
  EXPECT_THAT(Opcodes(Slice(loop)), Not(Contains("mul")));
  EXPECT_THAT(Opcodes(Slice(loop)), Not(Contains("st")));
}

/// `if (b == 5) times = 64; for (t < times)`: the loop's bound is a choice.
TEST(WorkSlice, FollowsValuesThatAreChosenByTheIndex) {
  const WorkSlice slice = Slice(
      kIndex +
      "mov.u32 %r5, 1;\nsetp.ne.u32 %p0, %r1, 5;\n@%p0 bra GO;\nmov.u32 %r5, 64;\nGO:\n"
      "mov.u32 %r3, 0;\nLOOP:\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, %r5;\n"
      "@%p1 bra LOOP;\nret;\n");
  EXPECT_FALSE(slice.alike);
  EXPECT_THAT(Opcodes(slice), testing::IsSupersetOf({"bra", "bra", "add"}));
}

/// The block that arrives last: an atomic decides, through shared memory.
TEST(WorkSlice, KeepsWhatOtherBlocksWrite) {
  const WorkSlice slice = Slice(
      kIndex +
      "setp.ne.u32 %p0, %r2, 0;\n@%p0 bra ALL;\n"
      "atom.global.inc.u32 %r3, [counter], %r0;\nst.shared.u32 [s], %r3;\nALL:\n"
      "bar.sync 0;\nld.shared.u32 %r4, [s];\nst.global.u32 [%d1], %r4;\n"
      "setp.ne.u32 %p1, %r4, %r0;\n@%p1 bra END;\nLOOP:\nadd.u32 %r2, %r2, 32;\n"
      "setp.lt.u32 %p2, %r2, %r0;\n@%p2 bra LOOP;\nEND:\nret;\n");
  EXPECT_EQ(slice.unknown, "");
  EXPECT_TRUE(slice.reads_memory && slice.shares_memory);
  EXPECT_FALSE(slice.takes_turns);
  EXPECT_THAT(slice.written, ElementsAre(kCounter));
  EXPECT_THAT(Opcodes(slice), testing::IsSupersetOf({"atom", "st", "bar", "ld"}));
}

TEST(WorkSlice, FindsQueues) {
  const WorkSlice slice = Slice(
      kIndex +
      "LOOP:\natom.global.add.u32 %r3, [counter], 1;\nsetp.ge.u32 %p0, %r3, %r0;\n"
      "@%p0 bra END;\nst.global.u32 [%d1], %r3;\nbra LOOP;\nEND:\nret;\n");
  EXPECT_TRUE(slice.takes_turns);
}

/// Two parameters that point to one allocation: what is stored through one is read through the
/// other.
TEST(WorkSlice, KnowsAllocationsAndNotParameters) {
  const std::string body = kIndex +
                           "st.global.u32 [%d1], %r1;\nld.global.u32 %r3, [%d0];\n"
                           "setp.eq.u32 %p0, %r3, 7;\n@%p0 bra END;\nLOOP:\nadd.u32 %r2, %r2, 32;\n"
                           "setp.lt.u32 %p1, %r2, %r0;\n@%p1 bra LOOP;\nEND:\nret;\n";
  EXPECT_TRUE(Slice(body).alike);
  const auto module = ptx::Parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)\n{\n"
      ".reg .pred %p<8>;\n.reg .b32 %r<16>;\n.reg .b64 %d<8>;\n" +
      body + "}\n");
  ASSERT_TRUE(module);
  const WorkSlice same = SliceOf(module->functions()[0], KeptBranches::kThatDiffer,
                                 [](const std::string&, uint64_t) { return kX; });
  EXPECT_FALSE(same.alike);
  EXPECT_TRUE(same.shares_memory);
}

/// Data decide about an instruction or two: blocks do about the same.
TEST(WorkSlice, LeavesOutSlightDecisionsOfData) {
  const std::string load = kIndex +
                           "mul.wide.u32 %d2, %r1, 4;\nadd.u64 %d0, %d0, %d2;\n"
                           "ld.global.u32 %r3, [%d0];\nsetp.eq.u32 %p0, %r3, 7;\n";
  EXPECT_TRUE(Slice(load + "@%p0 bra END;\nst.global.u32 [%d1], %r1;\nEND:\nret;\n").alike);
  EXPECT_FALSE(Slice(load + "@%p0 bra END;\nLOOP:\nadd.u32 %r2, %r2, 32;\n"
                            "setp.lt.u32 %p1, %r2, %r0;\n@%p1 bra LOOP;\nEND:\nret;\n")
                   .alike);
}

TEST(WorkSlice, SaysWhatItDoesNotKnow) {
  EXPECT_THAT(Slice(kIndex + "mov.u32 %r3, %smid;\nsetp.eq.u32 %p0, %r3, 7;\n@%p0 bra END;\n"
                             "st.global.u32 [%d1], %r1;\nEND:\nret;\n")
                  .unknown,
              testing::HasSubstr("clock"));
  EXPECT_THAT(Slice("LOOP:\nbra LOOP;\n").unknown, testing::HasSubstr("never ends"));
}

/// All branches: the executions of each basic block are those of the kernel.
TEST(WorkSlice, AllBranchesCountAllBlocks) {
  const WorkSlice slice = Slice(kIndex +
                                    "mov.u32 %r3, 0;\nLOOP:\nadd.u32 %r3, %r3, 1;\n"
                                    "setp.lt.u32 %p1, %r3, 64;\n@%p1 bra LOOP;\n"
                                    "st.global.u32 [%d1], %r3;\nret;\n",
                                KeptBranches::kAll);
  ASSERT_EQ(slice.counted.size(), 3u);
  EXPECT_EQ(slice.counted[0].instructions, 6u);
  EXPECT_EQ(slice.counted[1].first, 6u);
  EXPECT_EQ(slice.counted[1].instructions, 3u);
}

/// How often a thread polls a barrier in memory is no part of a block's work, and the slice runs
/// the loop once: it counts neither there nor in the kernel.
TEST(WorkSlice, PollingLoopsAreNotCounted) {
  for (const KeptBranches branches : {KeptBranches::kThatDiffer, KeptBranches::kAll}) {
    const WorkSlice slice = Slice(
        kIndex +
            "POLL:\nmbarrier.test_wait.shared.b64 %p0, [s], %d2;\n@!%p0 bra POLL;\n"
            "setp.ge.u32 %p1, %r1, %r0;\n@%p1 bra END;\nst.global.u32 [%d1], %r1;\nEND:\nret;\n",
        branches);
    EXPECT_EQ(slice.unknown, "");
    std::vector<uint32_t> counted;
    for (const CountedBlock& block : slice.counted) counted.push_back(block.first);
    EXPECT_THAT(counted, ElementsAre(0, 7, 9, 10));
  }
}

}  // namespace
}  // namespace atunner::vgpu
