// Grids whose blocks wait for each other, run by several threads of the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "atunner/vgpu/engine.h"

namespace atunner::vgpu {
namespace {

constexpr uint32_t kBlocks = 24;
constexpr uint32_t kSteps = 5;

/// In each step a block adds its neighbour's last value to its own; `publish` stands before it says
/// that it is ready.
std::string Steps(const std::string& publish) {
  return ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
         ".reg .b32 %r<12>;\n.reg .pred %p;\n.reg .b64 %to, %own, %next, %d;\n"
         "ld.param.u64 %to, [out];\nmov.u32 %r0, %nctaid.x;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r9, "
         "%envreg1;\n"
         "add.u32 %r2, %r1, 1;\nrem.u32 %r2, %r2, %r0;\n"
         "mul.wide.u32 %own, %r1, 4;\nadd.u64 %own, %own, %to;\nmul.wide.u32 %next, %r2, "
         "4;\nadd.u64 %next, %next, "
         "%to;\n"
         "mov.u32 %r3, 0;\nmov.u32 %r7, %r1;\n"
         "STEP:\nst.global.u32 [%own + 256], %r7;\n" +
         publish +
         "atom.global.add.u32 %r4, [%to], 1;\nadd.u32 %r3, %r3, 1;\nmul.lo.u32 %r5, %r3, %r0;\n"
         "WAIT:\nld.relaxed.gpu.global.u32 %r4, [%to];\nsetp.lt.u32 %p, %r4, %r5;\n@%p bra WAIT;\n"
         "fence.acq_rel.gpu;\nld.global.u32 %r6, [%next + 256];\nadd.u32 %r7, %r7, %r6;\n"
         "fence.acq_rel.gpu;\natom.global.add.u32 %r4, [%to + 128], 1;\n"
         "AGAIN:\nld.relaxed.gpu.global.u32 %r4, [%to + 128];\nsetp.lt.u32 %p, %r4, %r5;\n@%p bra "
         "AGAIN;\n"
         "fence.acq_rel.gpu;\n"
         "setp.lt.u32 %p, %r3, " +
         std::to_string(kSteps) + ";\n@%p bra STEP;\nst.global.u32 [%own + 256], %r7;\nret;\n}\n";
}

class CooperativeGrid : public testing::Test {
 protected:
  LaunchOutcome Run(const std::string& ptx, uint32_t threads, bool count = false,
                    const std::vector<uint64_t>& blocks = {}) {
    Memory memory(uint64_t{1} << 20);
    memory.Track();
    auto program = LoadProgram(ptx::Parse(ptx).value(), memory).value();
    const uint64_t to = memory.Allocate(1024).value();
    std::memset(reinterpret_cast<void*>(to), 0, 1024);
    memory.MarkDefined(to, 1024);
    std::vector<std::byte> params(8);
    std::memcpy(params.data(), &to, 8);
    ExecOptions options;
    options.check_global = options.keep_going = true;
    options.threads = threads;
    options.count = count;
    options.blocks = blocks;
    options.deadline_seconds = 20;
    options.max_warp_instructions_per_block = 200'000;
    LaunchShape shape{{kBlocks, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0};
    shape.cooperative = true;
    const ExecResult result = program->Run("k", shape, params, options);
    const LaunchOutcome& outcome = result.outcome;
    figures_ = result.counts.Figures();
    values_.resize(kBlocks);
    std::memcpy(values_.data(), reinterpret_cast<const std::byte*>(to) + 256, 4 * kBlocks);
    return outcome;
  }
  std::vector<uint32_t> values_;
  std::vector<std::pair<std::string, double>> figures_;
};

TEST_F(CooperativeGrid, IsTheSameOnAnyNumberOfThreads) {
  std::vector<uint32_t> expected(kBlocks);
  for (uint32_t i = 0; i < kBlocks; ++i) expected[i] = i;
  for (uint32_t step = 0; step < kSteps; ++step) {
    const std::vector<uint32_t> last = expected;
    for (uint32_t i = 0; i < kBlocks; ++i) expected[i] += last[(i + 1) % kBlocks];
  }
  for (const uint32_t threads : {1, 2, 3, 64}) {
    const LaunchOutcome outcome = Run(Steps("fence.acq_rel.gpu;\n"), threads);
    EXPECT_TRUE(outcome.completed()) << outcome.message;
    EXPECT_EQ(outcome.blocks_executed, kBlocks);
    EXPECT_EQ(values_, expected) << threads;
  }
}

TEST_F(CooperativeGrid, WhatIsCountedIsTheSameEveryTime) {
  Run(Steps("fence.acq_rel.gpu;\n"), 1, true);
  const auto expected = figures_;
  ASSERT_FALSE(expected.empty());
  for (int again = 0; again < 5; ++again) {
    Run(Steps("fence.acq_rel.gpu;\n"), 3, true);
    EXPECT_EQ(figures_, expected);
  }
}

// A grid that reads gigabytes takes minutes: a sample of its blocks is counted, and blocks that
// wait for others continue.
TEST_F(CooperativeGrid, ASampleOfItsBlocksWaitsForNoOthers) {
  std::string left_inside = Steps("fence.acq_rel.gpu;\n");
  const std::string wait =
      "WAIT:\nld.relaxed.gpu.global.u32 %r4, [%to];\nsetp.lt.u32 %p, %r4, %r5;\n@%p bra WAIT;\n";
  const size_t at = left_inside.find(wait);
  ASSERT_NE(at, std::string::npos);
  left_inside.replace(
      at, wait.size(),
      "WAIT:\nld.relaxed.gpu.global.u32 %r4, [%to];\nsetp.ge.u32 %p, %r4, %r5;\n@%p bra COME;\n"
      "bra WAIT;\nCOME:\n");
  for (const std::string& ptx : {Steps("fence.acq_rel.gpu;\n"), left_inside}) {
    Run(ptx, 1, true);
    const auto whole = figures_;
    const LaunchOutcome outcome = Run(ptx, 1, true, {3, 11});
    EXPECT_TRUE(outcome.completed()) << outcome.message;
    EXPECT_EQ(outcome.blocks_executed, 2u);
    const auto sample = figures_;
    EXPECT_TRUE(Run(ptx, 3, true, {3, 11}).completed());
    EXPECT_EQ(figures_, sample);
    for (size_t i = 0; i < sample.size(); ++i) {
      if (sample[i].first == "atomics") {
        EXPECT_EQ(sample[i].second * kBlocks / 2, whole[i].second) << "it does all its steps";
      }
    }
  }
}

// A loop that makes progress at each poll does not wait: here each atomic finds another value.
TEST_F(CooperativeGrid, ASampledBlockEndsItsLoopsOfAtomics) {
  const std::string ptx =
      ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
      ".reg .b32 %r<12>;\n.reg .pred %p;\n.reg .b64 %to;\nld.param.u64 %to, [out];\nmov.u32 %r9, "
      "%envreg1;\n"
      "mov.u32 %r1, 0;\nLOOP:\natom.global.add.u32 %r2, [%to], 1;\nadd.u32 %r1, %r1, "
      "1;\nsetp.lt.u32 %p, %r1, 1000;\n"
      "@%p bra LOOP;\nst.global.u32 [%to + 256], %r1;\nret;\n}\n";
  EXPECT_TRUE(Run(ptx, 1, true, {3}).completed());
  EXPECT_EQ(values_[0], 1000u);
}

TEST_F(CooperativeGrid, RacesBetweenItsBlocksAreFound) {
  for (const uint32_t threads : {1, 3}) {
    const LaunchOutcome outcome = Run(Steps(""), threads);
    ASSERT_FALSE(outcome.hazards.empty()) << threads;
    EXPECT_EQ(outcome.hazards.front().kind, Hazard::Kind::kRace);
  }
}

TEST_F(CooperativeGrid, ABlockThatNeverComesLeavesTheOthersWaiting) {
  const LaunchOutcome outcome = Run(
      Steps("setp.eq.u32 %p, %r1, 5;\n@%p exit;\nfence.acq_rel.gpu;\n"), 3);
  ASSERT_FALSE(outcome.hazards.empty());
  EXPECT_EQ(outcome.hazards.front().kind, Hazard::Kind::kInstructionBudget);
}

TEST_F(CooperativeGrid, AFaultEndsTheBlocksOfAllThreads) {
  const LaunchOutcome outcome = Run(
      Steps("setp.eq.u32 %p, %r1, 5;\n@%p trap;\nfence.acq_rel.gpu;\n"), 3);
  ASSERT_EQ(outcome.hazards.size(), 1u);
  EXPECT_EQ(outcome.hazards.front().kind, Hazard::Kind::kTrap);
}

}  // namespace
}  // namespace atunner::vgpu
