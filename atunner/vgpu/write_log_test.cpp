// What a launch reports of its work: the bytes that it wrote and the instructions that it executed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/device/profiles.h"
#include "atunner/vgpu/compiled_kernel_test.h"

namespace atunner::vgpu {
namespace {

using testing::ElementsAre;

/// out[(block * 32 + thread) * `stride`] by `store`.
std::string StoreBody(const std::string& store, int stride) {
  return R"(
    .reg .u32 %t<4>; .reg .u64 %a<4>;
    mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x;
    mad.lo.u32 %t2, %t1, 32, %t0;
    ld.param.u64 %a0, [out];
    mul.wide.u32 %a1, %t2, )" +
         std::to_string(4 * stride) + ";\n    add.u64 %a2, %a0, %a1;\n    " + store +
         "\n    ret;\n";
}

class WriteLogTest : public testing::Test {
 protected:
  LaunchOutcome Run(const std::string& body, uint32_t blocks, LaunchOptions options) {
    const auto module = gpu_.Load(CompiledKernel(gpu_, body)).value();
    memory_ = gpu_.Allocate(1 << 20).value();
    options.timeout_seconds = 600;
    return gpu_
        .Launch(*module, "k", {{blocks, 1, 1}, {32, 1, 1}, {1, 1, 1}},
                std::vector{KernelArg::Address(memory_->address())}, options)
        .value();
  }
  AddressRange At(uint64_t begin, uint64_t end) const {
    return {memory_->address() + begin, memory_->address() + end};
  }

  VirtualGpu gpu_{*FindProfile("A100")};
  std::unique_ptr<Buffer> memory_;
};

TEST_F(WriteLogTest, NeighboursAreOneRange) {
  const auto whole = Run(StoreBody("st.global.u32 [%a2], %t0;", 1), 8, {.log_writes = true});
  EXPECT_THAT(whole.written, ElementsAre(At(0, 8 * 128)));
}

TEST_F(WriteLogTest, OnlySelectedBlocksWrite) {
  const auto some = Run(StoreBody("st.global.u32 [%a2], %t0;", 1), 8,
                        {.blocks = {1, 2, 5}, .log_writes = true});
  EXPECT_THAT(some.written, ElementsAre(At(128, 384), At(640, 768)));
  EXPECT_EQ(some.blocks_executed, 3u);
}

TEST_F(WriteLogTest, EveryKindOfWriteIsLogged) {
  for (const char* store : {"st.global.u32 [%a2], %t0;", "st.volatile.global.u32 [%a2], %t0;",
                            "red.global.add.u32 [%a2], %t0;",
                            "atom.global.exch.b32 %t3, [%a2], %t0;", "st.u32 [%a2], %t0;"}) {
    const auto outcome = Run(StoreBody(store, 2), 1, {.log_writes = true});
    ASSERT_EQ(outcome.written.size(), 32u) << store;
    EXPECT_EQ(outcome.written[1], At(8, 12)) << store;
    EXPECT_EQ(outcome.written[31], At(248, 252)) << store;
  }
}

TEST_F(WriteLogTest, NothingIsLoggedUnlessAskedFor) {
  EXPECT_TRUE(Run(StoreBody("st.global.u32 [%a2], %t0;", 1), 2, {}).written.empty());
}

TEST_F(WriteLogTest, WorkIsCountedInWarpInstructions) {
  const std::string body = StoreBody("st.global.u32 [%a2], %t0;", 1);
  const uint64_t one = Run(body, 1, {}).warp_instructions;
  EXPECT_GE(one, 7u);
  EXPECT_EQ(Run(body, 96, {}).warp_instructions, 96 * one);
  EXPECT_EQ(Run(body, 96, {.blocks = {3, 80}}).warp_instructions, 2 * one);
}

TEST_F(WriteLogTest, ALimitOnTheWorkOfAllBlocksEndsTheLaunch) {
  const std::string body = StoreBody("st.global.u32 [%a2], %t0;", 1);
  const uint64_t one = Run(body, 1, {}).warp_instructions;
  EXPECT_TRUE(Run(body, 10, {.max_warp_instructions = 10 * one}).completed());
  const auto outcome = Run(body, 10, {.max_warp_instructions = 10 * one - 1});
  EXPECT_EQ(outcome.kind, LaunchOutcome::Kind::kTimeout);
  EXPECT_THAT(outcome.message, testing::HasSubstr("instructions"));
}

}  // namespace
}  // namespace atunner::vgpu
