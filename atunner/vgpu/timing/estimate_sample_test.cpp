// Which blocks of a launch a prediction executes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/device/profiles.h"
#include "atunner/vgpu/compiled_kernel_test.h"
#include "atunner/vgpu/timing/estimate.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::vgpu {
namespace {

/// A launch that adds up in memory is executed once, sample and the rest, and what it wrote is in
/// L2 for the next.
TEST(EstimateSample, SampledLaunchesAreCompleted) {
  VirtualGpu gpu(*FindProfile("H200"), 2);
  const CompiledModule compiled = CompiledKernel(
      gpu,
      ".reg .b32 %r<2>;\n.reg .b64 %to;\nld.param.u64 %to, [out];\n"
      "atom.global.add.u32 %r0, [%to], 1;\nld.global.u32 %r1, [%to+128];\nret;\n");
  const KernelResources& resources = compiled.kernels[0];
  const auto module = gpu.Load(compiled);
  ASSERT_TRUE(module) << module.error().ToString();
  const auto out = gpu.Allocate(1 << 20).value();
  const auto other = gpu.Allocate(1 << 20).value();
  std::vector<EstimateInput> seen;
  gpu.Observe([&](const EstimateInput& in) { seen.push_back(in); });
  const KernelArg args[] = {KernelArg::Address(out->address())};
  const KernelArg others[] = {KernelArg::Address(other->address())};
  for (const uint32_t cluster : {1u, 2u}) {
    const LaunchShape shape{{1000, 1, 1}, {1, 1, 1}, {cluster, 1, 1}, 0};
    ASSERT_TRUE(gpu.Fill(out->address(), 0, 4));
    const auto first = gpu.Predict(**module, resources, shape, args, {});
    ASSERT_TRUE(first) << first.error().ToString();
    if (cluster > 1) ASSERT_TRUE(gpu.Fill(out->address(), 0, 4));  // clusters begin anew
    ASSERT_TRUE(gpu.Complete(**module, "k", shape, args, first->blocks)->completed());
    uint32_t sum = 0;
    ASSERT_TRUE(gpu.CopyOut(std::as_writable_bytes(std::span(&sum, 1)), out->address()));
    EXPECT_EQ(sum, 1000u);
    const Predecessors earlier{{args[0]}, 1 << 20};
    const auto unrelated = gpu.Predict(**module, resources, shape, others, earlier);
    const auto next = gpu.Predict(**module, resources, shape, args, earlier);
    EXPECT_LT(unrelated->estimate.time_ns, first->estimate.time_ns)
        << "it does not wait for the host";
    EXPECT_LT(next->estimate.time_ns, unrelated->estimate.time_ns);
  }
  EXPECT_EQ(seen[0].known_bytes + seen[1].known_bytes, 0);
  EXPECT_EQ(seen[2].known_bytes, 1 << 20);
}

TEST(EstimateSample, OfBlocksWithAHugeTaskOneIsExecuted) {
  VirtualGpu gpu(*FindProfile("H200"), 2);
  const CompiledModule compiled = CompiledKernel(gpu, "ret;\n");
  const auto module = gpu.Load(compiled);
  ASSERT_TRUE(module) << module.error().ToString();
  const auto executed = [&](uint64_t bytes, uint32_t cluster) {
    const auto memory = gpu.Allocate(bytes).value();
    const KernelArg args[] = {KernelArg::Address(memory->address())};
    return gpu
        .Predict(**module, compiled.kernels[0], {{64, 1, 1}, {32, 1, 1}, {cluster, 1, 1}, 0}, args,
                 {})
        ->estimate.blocks_executed;
  };
  EXPECT_EQ(executed(1 << 20, 1), 10u);
  EXPECT_EQ(executed(uint64_t{1} << 30, 1), 10u);
  EXPECT_EQ(executed(uint64_t{16} << 30, 1), 1u);
  EXPECT_EQ(executed(uint64_t{16} << 30, 8), 8u) << "a cluster";
}

/// Two rows of blocks, of which the lower has nothing to do: the counts are those of the grid.
TEST(EstimateSample, HoldsAsManyEmptyBlocksAsTheGrid) {
  VirtualGpu gpu(*FindProfile("A100"), 1);
  const CompiledModule compiled = CompiledKernel(
      gpu,
      ".reg .b32 %r<2>;\n.reg .pred %p;\n.reg .b64 %to;\nld.param.u64 %to, [out];\nmov.u32 %r0, "
      "%ctaid.y;\n"
      "setp.ne.u32 %p, %r0, 0;\n@%p bra END;\nst.global.u32 [%to], %r0;\nEND:\nret;\n");
  const auto module = gpu.Load(compiled);
  ASSERT_TRUE(module) << module.error().ToString();
  const auto out = gpu.Allocate(256).value();
  std::vector<double> stores;
  gpu.Observe([&](const EstimateInput& in) {
    EXPECT_LE(in.blocks_executed, 11u);
    stores.push_back(static_cast<double>(in.counts.global.stores) / in.blocks_counted);
  });
  for (const uint32_t width : {4000u, 4001u, 4167u}) {
    const KernelArg args[] = {KernelArg::Address(out->address())};
    ASSERT_TRUE(gpu.Predict(**module, compiled.kernels[0], {{width, 2, 1}, {1, 1, 1}, {1, 1, 1}, 0},
                            args, {}));
  }
  EXPECT_THAT(stores, testing::Each(0.5));
}

/// Launches of one kernel whose threads run a loop; `choose` sets %r5, how often they do. %r0 =
/// %ctaid.x, %r1 = %nctaid.x, %r2 = %tid.x, %d0 = `out`.
class UnequalBlocks : public testing::Test {
 protected:
  static constexpr uint32_t kTimes = 200;  // of an average block
  static constexpr uint32_t kThreads = 64;

  void SetUp() override { out_ = gpu_.Allocate(1 << 16).value(); }

  Estimate Predict(const std::string& choose, uint32_t blocks, bool reset = true) {
    const CompiledModule compiled = CompiledKernel(
        gpu_,
        ".reg .b32 %r<16>;\n.reg .f32 %f<8>;\n.reg .pred %p<8>;\n.reg .b64 %d<8>;\n"
        ".shared .b32 s;\nld.param.u64 %d0, [out];\nmov.u32 %r0, %ctaid.x;\n"
        "mov.u32 %r1, %nctaid.x;\nmov.u32 %r2, %tid.x;\nmov.f32 %f0, 0f3f800000;\n" +
            choose +
            "RUN:\nsetp.eq.u32 %p7, %r5, 0;\n@%p7 bra DONE;\nLOOP:\n"
            "fma.rn.f32 %f0, %f0, %f0, %f0;\nfma.rn.f32 %f0, %f0, %f0, %f0;\n"
            "fma.rn.f32 %f0, %f0, %f0, %f0;\nfma.rn.f32 %f0, %f0, %f0, %f0;\n"
            "sub.u32 %r5, %r5, 1;\nsetp.ne.u32 %p6, %r5, 0;\n@%p6 bra LOOP;\n"
            "st.global.f32 [%d0 + 4096], %f0;\nDONE:\n" +
            (choose.contains("QUEUE") ? "bra QUEUE;\n" : "") + "END:\nret;\n");
    const auto module = gpu_.Load(compiled);
    EXPECT_TRUE(module) << module.error().ToString();
    if (reset) EXPECT_TRUE(gpu_.Fill(out_->address(), 0, out_->bytes()));
    const KernelArg args[] = {KernelArg::Address(out_->address())};
    const auto predicted = gpu_.Predict(**module, compiled.kernels[0],
                                        {{blocks, 1, 1}, {kThreads, 1, 1}, {1, 1, 1}, 0}, args,
                                        earlier_);
    EXPECT_TRUE(predicted) << predicted.error().ToString();
    return predicted ? predicted->estimate : Estimate{};
  }

  static std::string Times(uint64_t times) {
    return "mov.u32 %r5, " + std::to_string(times) + ";\n";
  }
  /// `heavy` times where the condition that `compare` puts into %p0 holds, else `light`.
  static std::string Where(const std::string& compare, uint64_t heavy, uint64_t light) {
    return compare + "selp.u32 %r5, " + std::to_string(heavy) + ", " + std::to_string(light) +
           ", %p0;\n";
  }
  /// The time of one block alone, which is executed completely.
  double Alone(uint64_t times) { return Predict(Times(times), 1).time_ns; }

  VirtualGpu gpu_{*FindProfile("H200"), 2};
  std::unique_ptr<Buffer> out_;
  Predecessors earlier_;
};

TEST_F(UnequalBlocks, AKernelTakesWhatItsWavesTake) {
  const double ten = Predict(Times(kTimes), 10).time_ns;
  EXPECT_NEAR(ten, Alone(kTimes), ten * 0.1);
  EXPECT_NEAR(Predict(Times(kTimes), 100).time_ns, ten, ten * 0.1);
  const double many = Predict(Times(kTimes), 132 * 32 * 4).time_ns;
  const double more = Predict(Times(kTimes), 132 * 32 * 8).time_ns;
  EXPECT_NEAR(more - many, many - Predict(Times(kTimes), 132 * 32).time_ns, 0.5 * many);
  EXPECT_NEAR(more / many, 2, 0.2);
}

TEST_F(UnequalBlocks, OneBlockThatDoesAllIsAlone) {
  for (const uint32_t blocks : {50u, 1000u, 10000u}) {
    const double alone = Alone(uint64_t{kTimes} * blocks);
    const Estimate one = Predict(
        Where("setp.eq.u32 %p0, %r0, " + std::to_string(blocks / 2 + 1) + ";\n",
              uint64_t{kTimes} * blocks, 0),
        blocks);
    EXPECT_NEAR(one.time_ns, alone, alone * 0.1) << blocks;
    EXPECT_LT(one.blocks_executed, 40u);
  }
}

/// The block that arrives last does all, and the counter is as it was before the prediction.
TEST_F(UnequalBlocks, TheLastToArriveIsAlone) {
  const uint32_t blocks = 2000;
  const std::string last =
      "setp.ne.u32 %p1, %r2, 0;\n@%p1 bra ALL;\nsub.u32 %r3, %r1, 1;\n"
      "atom.global.inc.u32 %r4, [%d0], %r3;\nst.shared.u32 [s], %r4;\nALL:\nbar.sync 0;\n"
      "ld.shared.u32 %r4, [s];\nsub.u32 %r3, %r1, 1;\nsetp.ne.u32 %p2, %r4, %r3;\n"
      "@%p2 bra END;\n";
  const double alone = Alone(uint64_t{kTimes} * blocks);
  for (const bool reset : {true, false}) {
    const double time = Predict(last + Times(uint64_t{kTimes} * blocks), blocks, reset).time_ns;
    EXPECT_NEAR(time, alone, alone * 0.1);
    uint32_t counter = 1;
    ASSERT_TRUE(gpu_.CopyOut(std::as_writable_bytes(std::span(&counter, 1)), out_->address()));
    EXPECT_EQ(counter, 0u);
  }
}

TEST_F(UnequalBlocks, HeavyBlocksByTheirNumber) {
  const uint32_t blocks = 5120;
  const double alone = Alone(512 * kTimes);
  const double time = Predict("and.b32 %r3, %r0, 511;\n" +
                                  Where("setp.eq.u32 %p0, %r3, 300;\n", 512 * kTimes, 0),
                              blocks)
                          .time_ns;
  EXPECT_NEAR(time, alone, alone * 0.1);
}

/// The blocks behind a heavy one fill the GPU meanwhile; a heavy last block runs after all others.
TEST_F(UnequalBlocks, HeavyHeadAndTail) {
  const uint32_t blocks = 132 * 32 * 6;
  const double even = Predict(Times(kTimes), blocks).time_ns;
  const double alone = Alone(64 * kTimes);
  const double head = Predict(Where("setp.eq.u32 %p0, %r0, 0;\n", 64 * kTimes, kTimes), blocks)
                          .time_ns;
  const double tail = Predict(Where("add.u32 %r3, %r0, 1;\nsetp.eq.u32 %p0, %r3, %r1;\n",
                                    64 * kTimes, kTimes),
                              blocks)
                          .time_ns;
  EXPECT_GT(head, std::max(even, alone) * 0.9);
  EXPECT_LT(head, even + 0.7 * alone);
  EXPECT_NEAR(tail, even + alone, (even + alone) * 0.2);
}

/// Each block does a different amount: the mean counts while there are many waves, the largest
/// while all run at once.
TEST_F(UnequalBlocks, TriangularWork) {
  const double alone = Alone(2 * kTimes);
  const auto rising = [&](uint32_t blocks) {
    return Predict("mul.lo.u32 %r5, %r0, " + std::to_string(2 * kTimes) +
                       ";\ndiv.u32 %r5, %r5, %r1;\nadd.u32 %r5, %r5, 1;\n",
                   blocks)
        .time_ns;
  };
  EXPECT_NEAR(rising(100), alone, alone * 0.1);
  const uint32_t many = 132 * 32 * 10;
  const double even = Predict(Times(kTimes), many).time_ns;
  EXPECT_NEAR(rising(many), even, even * 0.2);
}

/// Persistent blocks take tiles from a queue until none is left.
TEST_F(UnequalBlocks, AQueueIsSharedByAllBlocks) {
  const uint32_t blocks = 132;
  const std::string queue =
      "QUEUE:\nbar.sync 0;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra ALL;\n"
      "atom.global.add.u32 %r4, [%d0], 1;\nst.shared.u32 [s], %r4;\nALL:\nbar.sync 0;\n"
      "ld.shared.u32 %r4, [s];\nsetp.ge.u32 %p2, %r4, 1320;\n@%p2 bra END;\n" +
      Times(kTimes);
  const double alone = Alone(10 * kTimes);
  EXPECT_NEAR(Predict(queue, blocks).time_ns, alone, alone * 0.3);
}

/// A warp polls until another one has arrived, as often as it takes: that is no work of the block.
/// Blocks differ, so that each kind stands for its share of the grid.
TEST_F(UnequalBlocks, PollingIsNoWork) {
  std::vector<double> warps;
  gpu_.Observe([&](const EstimateInput& in) {
    warps.push_back(static_cast<double>(in.counts.warps) / in.blocks_counted);
  });
  const std::string waits =
      ".shared .align 8 .b64 m;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra READY;\n"
      "mbarrier.init.shared.b64 [m], 32;\nREADY:\nmov.u32 %r6, 0;\n"
      "ROUND:\nbar.sync 0;\nsetp.lt.u32 %p1, %r2, 32;\n@%p1 bra WAIT;\n"
      "mbarrier.arrive.shared.b64 _, [m];\n"
      "WAIT:\nand.b32 %r7, %r6, 1;\n"
      "POLL:\nmbarrier.test_wait.parity.shared.b64 %p3, [m], %r7;\n@!%p3 bra POLL;\n"
      "add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, 200;\n@%p2 bra ROUND;\n";
  const std::string odd = "and.b32 %r3, %r0, 1;\n" + Where("setp.eq.u32 %p0, %r3, 1;\n", kTimes, 1);
  Predict(waits + odd, 1000);
  ASSERT_EQ(warps.size(), 1u);
  EXPECT_NEAR(warps[0], kThreads / 32, 0.01);
}

/// The second launch does what the first one writes: the first is completed, although a prediction
/// alone needs only a sample of it.
TEST_F(UnequalBlocks, WorkThatAnEarlierLaunchDecides) {
  const uint32_t blocks = 2000;
  const CompiledModule writes = CompiledKernel(
      gpu_,
      ".reg .b32 %r<4>;\n.reg .b64 %d<4>;\nld.param.u64 %d0, [out];\nmov.u32 %r0, %ctaid.x;\n"
      "mul.wide.u32 %d1, %r0, 4;\nadd.u64 %d1, %d0, %d1;\nmov.u32 %r1, 2000;\n"
      "st.global.u32 [%d1 + 8192], %r1;\nret;\n");
  const auto first = gpu_.Load(writes);
  ASSERT_TRUE(first);
  const KernelArg args[] = {KernelArg::Address(out_->address())};
  const std::string reads =
      "mul.wide.u32 %d1, %r0, 4;\nadd.u64 %d1, %d0, %d1;\nld.global.u32 %r5, [%d1 + 8192];\n";
  const double all = Predict(Times(2000), blocks).time_ns;
  ASSERT_LT(Predict(reads, blocks).time_ns, 0.2 * all) << "nothing was written yet";
  ASSERT_TRUE(gpu_.Predict(**first, writes.kernels[0], {{blocks, 1, 1}, {1, 1, 1}, {1, 1, 1}, 0},
                           args, {}));
  earlier_ = {{args[0]}, 8000};
  EXPECT_NEAR(Predict(reads, blocks, false).time_ns, all, 0.2 * all);
}

/// Where it is not known what each block does, the interval says so.
TEST_F(UnequalBlocks, TheIntervalHoldsWhatIsNotKnown) {
  const uint32_t blocks = 2000;
  const Estimate estimate = Predict(
      "mov.u32 %r3, %smid;\n" + Where("setp.eq.u32 %p0, %r3, 1000;\n", 100 * kTimes, kTimes),
      blocks);
  EXPECT_GT(estimate.high_ns, Alone(uint64_t{kTimes} * blocks));
  const Estimate known = Predict(Times(kTimes), blocks);
  EXPECT_LT(known.high_ns, 1.5 * known.time_ns);
}

}  // namespace
}  // namespace atunner::vgpu
