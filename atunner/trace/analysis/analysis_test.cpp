#include "atunner/trace/analysis/analysis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/random.h"
#include "atunner/trace/analysis/ranks.h"
#include "atunner/trace/timeline_builder_test.h"

namespace atunner::trace {
namespace {

constexpr int64_t kUs = 1000;

int64_t IdleOf(const Analysis& analysis, IdleCause cause) {
  return analysis.times.devices.at(0).IdleFor(cause) / kUs;
}

TEST(KernelClass, KnowsNamesOfLibraries) {
  const std::vector<std::pair<const char*, KernelClass>> names = {
      {"ampere_sgemm_128x64_nn", KernelClass::kMatmul},
      {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", KernelClass::kMatmul},
      {"void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_f16_64x64_32x6_nn_align8>(P)",
       KernelClass::kMatmul},
      {"void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>(Flash_fwd_params)",
       KernelClass::kAttention},
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)", KernelClass::kCommunication},
      {"void at::native::vectorized_elementwise_kernel<4, AddFunctor>", KernelClass::kElementwise},
      {"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
       KernelClass::kReduction},
      {"void (anonymous namespace)::softmax_warp_forward<float, float, 10>", KernelClass::kSoftmax},
      {"void cudnn::ops::nchwToNhwcKernel<__half>", KernelClass::kLayout},
      {"sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc", KernelClass::kConvolution},
      {"vectorized_layer_norm_kernel", KernelClass::kNormalization},
      {"multi_tensor_apply_kernel<AdamFunctor>", KernelClass::kOptimizer},
      {"void at::native::(anonymous namespace)::indexSelectLargeIndex", KernelClass::kIndexing},
      {"my_kernel", KernelClass::kOther}};
  for (const auto& [name, wanted] : names)
    EXPECT_EQ(Name(ClassOfKernel(name)), Name(wanted)) << name;
  EXPECT_TRUE(UsesTensorCores("sm80_xmma_gemm_f16f16_f16f32"));
  EXPECT_FALSE(UsesTensorCores("ampere_sgemm_128x64_nn"));
  EXPECT_TRUE(IsDoublePrecision("ampere_dgemm_64x64_nn"));
}

TEST(DeviceTime, AgreesWithAWalkOverEveryMicrosecond) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    constexpr int kLength = 200;
    std::array<int, kLength> sorts[3] = {};
    TimelineBuilder builder;
    builder.Host(EventKind::kOperator, "whole", 0, kLength);
    for (uint64_t n = random.Below(25); n > 0; --n) {
      const auto at = static_cast<int64_t>(random.Below(kLength));
      const auto length = static_cast<int64_t>(
          random.Below(static_cast<uint64_t>(std::min<int64_t>(40, kLength - at))));
      const size_t sort = random.Below(3);
      const auto stream = static_cast<int64_t>(random.Below(3));
      if (sort == 2)
        builder.Copy({}, at, length);
      else
        builder.Kernel(sort == 0 ? "gemm" : "ncclKernel", at, at, length, {}, stream);
      for (int64_t t = at; t < at + length; ++t) sorts[sort][static_cast<size_t>(t)] = 1;
    }
    const Timeline timeline = builder.Build();
    const EventIndex index(timeline);
    const DeviceTimes times = DeviceTimesOf(index, {0, kLength * kUs});
    if (times.devices.empty()) continue;
    DeviceTime wanted;
    for (size_t t = 0; t < kLength; ++t) {
      wanted.compute += sorts[0][t];
      wanted.communication += sorts[1][t];
      wanted.copies += sorts[2][t];
      wanted.exposed_communication += sorts[1][t] && !sorts[0][t];
      wanted.exposed_copies += sorts[2][t] && !sorts[0][t] && !sorts[1][t];
      wanted.busy += sorts[0][t] || sorts[1][t] || sorts[2][t];
    }
    const DeviceTime& got = times.devices[0];
    EXPECT_EQ(got.compute, wanted.compute * kUs);
    EXPECT_EQ(got.communication, wanted.communication * kUs);
    EXPECT_EQ(got.copies, wanted.copies * kUs);
    EXPECT_EQ(got.exposed_communication, wanted.exposed_communication * kUs);
    EXPECT_EQ(got.exposed_copies, wanted.exposed_copies * kUs);
    EXPECT_EQ(got.busy, wanted.busy * kUs);
    int64_t idle = 0;
    for (const int64_t cause : got.idle) idle += cause;
    EXPECT_EQ(idle, got.Idle());
    EXPECT_EQ(got.compute + got.exposed_communication + got.exposed_copies + got.Idle(),
              got.window);
    int64_t path = 0;
    for (const PathSegment& segment : FindCriticalPath(index, {0, kLength * kUs}).segments)
      path += segment.at.length();
    EXPECT_EQ(path, kLength * kUs);
  }
}

TEST(IdleCauses, NameWhatTheHostDid) {
  // gap 10-50: data loading 10-30, an operator 30-40, launch 40-41, on the way 41-50
  const Timeline timeline = TimelineBuilder()
                                .Run("a", 1, 9)
                                .Operator("enumerate(DataLoader)#next", 8, 22)
                                .Operator("aten::mm", 30, 15)
                                .Kernel("b", 40, 50, 10)
                                .Build();
  const Analysis analysis = Analyze(timeline);
  EXPECT_EQ(IdleOf(analysis, IdleCause::kDataLoading), 20);
  EXPECT_EQ(IdleOf(analysis, IdleCause::kHostWork), 10);
  EXPECT_EQ(IdleOf(analysis, IdleCause::kLaunch), 10 + 1);  // and before the first kernel
  ASSERT_FALSE(analysis.times.longest.empty());
  EXPECT_EQ(analysis.times.longest[0].at.length(), 40 * kUs);
  EXPECT_EQ(analysis.times.longest[0].Main(), IdleCause::kDataLoading);
}

TEST(IdleCauses, AGapAfterAWaitBelongsToTheWait) {
  const Timeline timeline = TimelineBuilder()
                                .Run("a", 1, 9)
                                .Call("cudaDeviceSynchronize", 2, 9)
                                .Operator("aten::mm", 12, 20)
                                .Kernel("b", 25, 30, 10)
                                .Build();
  const Analysis analysis = Analyze(timeline);
  EXPECT_EQ(IdleOf(analysis, IdleCause::kSynchronization), 20);
  EXPECT_EQ(IdleOf(analysis, IdleCause::kHostWork), 0);
}

TEST(IdleCauses, WorkThatWasSubmittedInTimeDependsOnSomethingElse) {
  const Timeline timeline = TimelineBuilder().Kernel("a", 0, 5, 15).Kernel("b", 2, 28, 10).Build();
  EXPECT_EQ(IdleOf(Analyze(timeline), IdleCause::kDependency), 8);
}

TEST(IdleCauses, WithoutCallsTheCauseIsUnknown) {
  const Timeline timeline = TimelineBuilder().Unlinked("a", 0, 10).Unlinked("b", 20, 10).Build();
  EXPECT_EQ(IdleOf(Analyze(timeline), IdleCause::kUnknown), 10);
}

TEST(Tables, KernelsAndOperators) {
  const Timeline timeline = TimelineBuilder()
                                .Operator("aten::linear", 0, 100)
                                .Operator("aten::addmm", 5, 50)
                                .Kernel("gemm", 10, 20, 30)
                                .Kernel("gemm", 30, 60, 10)
                                .Kernel("bias", 70, 80, 5)
                                .Build();
  const Analysis analysis = Analyze(timeline);
  const Tables& tables = analysis.tables;
  ASSERT_EQ(tables.kernels.size(), 2u);
  EXPECT_EQ(timeline.strings[tables.kernels[0].name], "gemm");
  EXPECT_EQ(tables.kernels[0].count, 2u);
  EXPECT_EQ(tables.kernels[0].total, 40 * kUs);
  EXPECT_EQ(tables.kernels[0].shortest, 10 * kUs);
  EXPECT_EQ(tables.kernels[0].longest, 30 * kUs);
  EXPECT_NEAR(tables.kernels[0].share, 40.0 / 45, 1e-12);
  EXPECT_EQ(timeline.strings[tables.kernels[0].operator_name], "aten::addmm");
  ASSERT_EQ(tables.operators.size(), 2u);
  const OperatorRow& linear = tables.operators[0];
  EXPECT_EQ(timeline.strings[linear.name], "aten::linear");
  EXPECT_EQ(linear.device_total, 45 * kUs);
  EXPECT_EQ(linear.device_self, 5 * kUs);
  EXPECT_EQ(linear.host_self, (100 - 50 - 1) * kUs);  // one launch directly inside
  EXPECT_EQ(linear.launches, 3u);
  EXPECT_EQ(tables.operators[1].device_self, 40 * kUs);
}

TEST(Tables, GraphsSubmitSeveralPieces) {
  const Timeline timeline = TimelineBuilder().Graph(3, 10).Graph(3, 20).Build();
  const Analysis analysis = Analyze(timeline);
  EXPECT_EQ(analysis.tables.graph_launches, 2u);
  EXPECT_EQ(analysis.tables.graph_work, 6u);
  EXPECT_EQ(analysis.tables.unlinked, 0u);
}

TEST(Iterations, FromAnnotations) {
  TimelineBuilder builder;
  for (int i = 0; i < 4; ++i) builder.Step(i, 100 * i, 90).Run("k", 100 * i + 20, 60);
  const Timeline timeline = builder.Build();
  const Analysis analysis = Analyze(timeline);
  EXPECT_EQ(analysis.iterations.found_by, "annotation ProfilerStep#");
  EXPECT_EQ(analysis.iterations.at.size(), 4u);
  EXPECT_EQ(analysis.iterations.Median(), 90 * kUs);
  EXPECT_EQ(analysis.window, (Interval{0, 390 * kUs}));
}

TEST(Iterations, FromNamesThatCount) {
  TimelineBuilder builder;
  for (int i = 0; i < 3; ++i)
    builder.Host(EventKind::kAnnotation, "train step " + std::to_string(i), 50 * i, 40);
  const Timeline timeline = builder.Build();
  EXPECT_EQ(Analyze(timeline).iterations.found_by, "annotation train step ");
}

TEST(Iterations, NotFromNamesOfModules) {
  TimelineBuilder builder;
  for (int i = 0; i < 3; ++i)
    builder.Host(EventKind::kAnnotation, "nn.BatchNorm2d_" + std::to_string(i), 50 * i, 40);
  const Timeline timeline = builder.Build();
  EXPECT_EQ(Analyze(timeline).iterations.found_by, "");
}

TEST(Iterations, FromRepetition) {
  TimelineBuilder builder;
  int64_t at = 0;
  for (int i = 0; i < 6; ++i)
    for (const char* name : {"embed", "gemm", "norm", "gemm", "norm", "loss"})
      builder.Run(name, at += 10, 8);
  const Timeline timeline = builder.Build();
  const Analysis analysis = Analyze(timeline);
  EXPECT_EQ(analysis.iterations.found_by, "repetition of 6 kernels");
  EXPECT_EQ(analysis.iterations.at.size(), 6u);
  EXPECT_EQ(analysis.iterations.Median(), 60 * kUs);
}

TEST(Iterations, NoneWithoutAPattern) {
  TimelineBuilder builder;
  for (int i = 0; i < 20; ++i) builder.Run("kernel " + std::to_string(i * i % 19) + "x", 10 * i, 5);
  const Timeline timeline = builder.Build();
  EXPECT_EQ(Analyze(timeline).iterations.found_by, "");
}

TEST(CriticalPath, FollowsStreamsLaunchesAndWaits) {
  // The host launches a, waits for it, works 20 us, and launches b: all of that is on the path. The
  // kernel on the other stream is not.
  const Timeline timeline = TimelineBuilder()
                                .Kernel("a", 0, 10, 40)
                                .Kernel("beside", 2, 12, 20, {}, 9)
                                .Call("cudaDeviceSynchronize", 5, 47)
                                .Operator("aten::mm", 52, 25)
                                .Kernel("b", 70, 80, 20)
                                .Build();
  const EventIndex index(timeline);
  const CriticalPath path = FindCriticalPath(index, index.span());
  std::vector<std::string> names;
  for (const PathSegment& segment : path.segments)
    names.push_back(std::string(Name(segment.part)) + " " +
                    std::string(segment.event == kNoEvent ? "" : timeline.NameOf(segment.event)));
  EXPECT_EQ(names, (std::vector<std::string>{"host cudaLaunchKernel", "waiting a", "gpu a",
                                             "host cudaDeviceSynchronize", "host aten::mm",
                                             "host cudaLaunchKernel", "waiting b", "gpu b"}));
  EXPECT_EQ(path.TotalOf(PathPart::kGpu), 60 * kUs);
  EXPECT_EQ(path.segments.front().at.begin, 0);
  EXPECT_EQ(path.segments.back().at.end, 100 * kUs);
}

/// A rank whose collectives begin at `arrival` and end together with those of the others.
Timeline Rank(int rank, int64_t arrival) {
  TimelineBuilder builder;
  for (int i = 0; i < 10; ++i) {
    const int64_t at = 1000 * i;
    builder.Run("gemm", at, arrival).Run("ncclAllReduce", at + arrival, 600 - arrival);
  }
  builder.raw().rank = rank;
  return builder.Build();
}

TEST(Ranks, TheLastToArriveIsTheStraggler) {
  const Timeline timelines[] = {Rank(0, 100), Rank(1, 110), Rank(2, 500), Rank(3, 105)};
  std::vector<Analysis> analyses;
  for (const Timeline& timeline : timelines) analyses.push_back(Analyze(timeline));
  std::vector<RankInput> inputs;
  for (const Analysis& analysis : analyses)
    inputs.push_back({&analysis, CollectivesOf(*analysis.timeline)});
  const RankComparison result = CompareRanks(inputs);
  EXPECT_EQ(result.collectives, 10u);
  ASSERT_GE(result.straggler, 0);
  const RankRow& row = result.ranks[static_cast<size_t>(result.straggler)];
  EXPECT_EQ(row.rank, 2);
  EXPECT_EQ(row.last_arrivals, 10u);
  EXPECT_EQ(row.caused_wait, 10 * 400 * kUs);
  EXPECT_GT(result.Imbalance(), 2);
  inputs.pop_back();
  inputs.pop_back();
  EXPECT_LT(CompareRanks(inputs).straggler, 0);  // 10 us of 1000 are no reason
}

TEST(Memory, PeaksOfDevices) {
  TimelineBuilder builder;
  builder.Run("k", 0, 1).Memory(500, 2000).Memory(900, 2000).Memory(100, 1000);
  const Timeline timeline = builder.Build();
  const Analysis analysis = Analyze(timeline);
  ASSERT_EQ(analysis.memory.size(), 1u);
  EXPECT_EQ(analysis.memory[0].peak_allocated, 900);
  EXPECT_EQ(analysis.memory[0].peak_reserved, 2000);
  EXPECT_EQ(analysis.memory[0].capacity, 100'000'000'000);
}

}  // namespace
}  // namespace atunner::trace
