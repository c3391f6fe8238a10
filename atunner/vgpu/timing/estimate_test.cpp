#include "atunner/vgpu/timing/estimate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "atunner/device/profiles.h"

namespace atunner::vgpu {
namespace {

/// A kernel of 1320 blocks that streams: ten of its blocks were executed.
EstimateInput Streaming() {
  static const DeviceProfile profile = *FindProfile("H200");
  EstimateInput in;
  in.profile = &profile;
  in.calibration = Calibration::Expected(profile);
  in.shape = {{1320, 1, 1}, {256, 1, 1}, {1, 1, 1}, 0};
  in.resources.registers = 32;
  in.occupancy = {8, 64, 1, "warps"};
  in.blocks_executed = 10;
  in.counts.global.unique_load_sectors = 10 * 4096;
  in.counts.global.unique_store_sectors = 10 * 4096;
  in.counts.global.wavefronts = 10 * 2048;
  in.counts.issued = 10 * 20000;
  in.counts.pipe_uses[static_cast<size_t>(Pipe::kFma)] = 10 * 8000;
  in.counts.code_instructions = 200;
  in.counts.path = {10 * 5000, 10 * 8000};
  in.footprint_bytes = 1320.0 * 8192 * 32;
  return in;
}

double Time(const EstimateInput& in) { return EstimateTime(in).time_ns; }

TEST(Estimate, PartsAddUp) {
  for (const double scale : {0.001, 1.0, 1000.0}) {
    EstimateInput in = Streaming();
    in.counts.path[1] *= scale;
    const Estimate estimate = EstimateTime(in);
    double sum = 0;
    for (const Estimate::Part& part : estimate.parts) sum += part.overlapped ? 0 : part.ns;
    EXPECT_NEAR(sum, estimate.time_ns, 1e-6 * estimate.time_ns);
    EXPECT_LT(estimate.low_ns, estimate.time_ns);
    EXPECT_GT(estimate.high_ns, estimate.time_ns);
    EXPECT_FALSE(estimate.limiter.empty());
  }
}

TEST(Estimate, MoreWorkIsNeverFaster) {
  const double base = Time(Streaming());
  const auto worse = [&](auto&& change) {
    EstimateInput in = Streaming();
    change(in);
    return Time(in) >= base;
  };
  EXPECT_TRUE(worse([](EstimateInput& in) { in.counts.global.unique_load_sectors *= 2; }));
  EXPECT_TRUE(worse([](EstimateInput& in) { in.counts.issued *= 10; }));
  EXPECT_TRUE(worse([](EstimateInput& in) { in.counts.shared.wavefronts += 1000000; }));
  EXPECT_TRUE(worse([](EstimateInput& in) { in.counts.tensor.mma_work += 1e12; }));
  EXPECT_TRUE(worse([](EstimateInput& in) { in.counts.tensor.wgmma_work += 1e12; }));
  EXPECT_TRUE(worse([](EstimateInput& in) { in.counts.shared.remote_packets += 1000000; }));
  EXPECT_TRUE(worse([](EstimateInput& in) { in.counts.local_requests += 1000000; }));
  EXPECT_TRUE(worse([](EstimateInput& in) { in.counts.code_instructions = 20000; }));
  EXPECT_TRUE(worse([](EstimateInput& in) { in.counts.path[1] *= 4; }));
  EXPECT_TRUE(worse([](EstimateInput& in) { in.shape.grid.x *= 2; }));
  for (size_t pipe = 0; pipe < kPipes; ++pipe)
    EXPECT_TRUE(worse([&](EstimateInput& in) { in.counts.pipe_uses[pipe] += 1000000; })) << pipe;
}

TEST(Estimate, BetterMachinesAreNeverSlower) {
  const double base = Time(Streaming());
  const auto faster = [&](auto&& change) {
    EstimateInput in = Streaming();
    change(in.calibration);
    return Time(in) <= base;
  };
  EXPECT_TRUE(faster([](Calibration& c) { c.dram_gbps *= 2; }));
  EXPECT_TRUE(faster([](Calibration& c) { c.l2_gbps *= 2; }));
  EXPECT_TRUE(faster([](Calibration& c) { c.launch_ns = 0; }));
  EXPECT_TRUE(faster([](Calibration& c) { c.block_ns = 0; }));
  EXPECT_TRUE(faster([](Calibration& c) { c.evicted_share = 0; }));
  EXPECT_TRUE(faster([](Calibration& c) { c.code_ns = c.code_clk = c.far_code_clk = 0; }));
}

TEST(Estimate, OccupancyHidesLatencyOnly) {
  EstimateInput waiting = Streaming();
  waiting.counts.path = {10 * 5e5, 10 * 8e5};
  EstimateInput alone = waiting;
  alone.occupancy = {1, 8, 0.125, "shared memory"};
  EXPECT_GT(Time(alone), 2 * Time(waiting));
  EXPECT_EQ(EstimateTime(alone).limiter, "latency");
}

TEST(Estimate, ATailCostsAWave) {
  EstimateInput in = Streaming();
  in.counts.path = {10 * 5e5, 10 * 8e5};
  in.occupancy = {1, 8, 0.125, "shared memory"};
  in.shape.grid.x = 132;
  const double one = Time(in);
  in.shape.grid.x = 133;
  EXPECT_GT(Time(in), 1.3 * one);
}

TEST(Estimate, BlocksAtOnceEndWithTheLongest) {
  EstimateInput in = Streaming();
  in.counts.path = {10 * 5e5, 10 * 5e5};
  in.counts.tensor.wgmma_work = 10 * 4.5e5 * 2 * 2048;
  in.occupancy = {1, 8, 0.125, "shared memory"};
  in.shape.grid.x = 132;
  const double alike = Time(in);
  in.counts.longest_path = {5e5, 5e5};
  EXPECT_EQ(Time(in), alike);
  in.counts.longest_path = {7.5e5, 7.5e5};
  EXPECT_GT(Time(in), 1.4 * alike) << "a grid that strides over one and two tiles a block";
  in.occupancy.blocks_per_sm = 2;
  EXPECT_GT(Time(in), 1.3 * alike);
  in.shape.grid.x = 132 * 64;
  const double many = Time(in);
  in.counts.longest_path = {};
  EXPECT_EQ(Time(in), many) << "other blocks fill what short ones leave";
}

TEST(Estimate, ClustersOfMoreThanTwoLeaveSmsAlone) {
  EstimateInput in = Streaming();
  in.counts.path = {10 * 5e5, 10 * 8e5};
  in.occupancy = {1, 8, 0.125, "shared memory"};
  in.shape.grid.x = 132;
  const double one = Time(in);
  in.cluster = 2;
  EXPECT_EQ(Time(in), one);
  in.cluster = 4;
  EXPECT_GT(Time(in), 1.3 * one) << "33 clusters, of which 30 are resident";
  in.shape.grid.x = 120;
  EXPECT_LE(Time(in), one);
}

TEST(Estimate, TensorCoresSlowTheClock) {
  EstimateInput in = Streaming();
  in.counts.path = {10 * 4e7, 10 * 4e7};
  const double without = Time(in);
  in.counts.tensor.wgmma_work = 1;
  EXPECT_NEAR(Time(in) / without, 1 / in.calibration.wgmma_share, 0.01);
}

TEST(Estimate, WhatRunsBesideIsNotAddedToThePath) {
  EstimateInput in = Streaming();
  in.counts.path = {10 * 4e5, 10 * 4e5};
  in.occupancy = {1, 8, 0.125, "shared memory"};
  in.counts.tensor.wgmma_work = 1;
  const double path = Time(in);
  in.counts.tensor.wgmma_work = 10 * 3.5e5 * 2 * 2048;
  EXPECT_EQ(Time(in), path);
  in.counts.tensor.wgmma_work *= 2;
  EXPECT_GT(Time(in), 1.5 * path);
  EXPECT_EQ(EstimateTime(in).limiter, "tensor cores");
}

TEST(Estimate, OnlyOtherBlocksHideTheStoresOfAProduct) {
  EstimateInput in = Streaming();
  in.counts.path = {10 * 4e5, 10 * 4e5};
  in.counts.async_copy_bytes = 10 * 4096 * 32;
  in.occupancy = {1, 8, 0.125, "shared memory"};
  in.footprint_bytes = 132.0 * 8192 * 32;
  const auto cost = [&](uint32_t blocks) {
    in.shape.grid.x = blocks;
    in.counts.tensor.mma_work = 0;
    const double streams = Time(in);
    in.counts.tensor.mma_work = 1;
    return Time(in) - streams;
  };
  const double wave = 132.0 * 4096 * 32 / in.calibration.l2_gbps;
  EXPECT_NEAR(cost(132), wave, 0.1 * wave);
  EXPECT_NEAR(cost(1320), 10 * wave, wave);
  in.occupancy = {2, 16, 0.25, "shared memory"};
  EXPECT_NEAR(cost(264), wave, 0.1 * wave);
  EXPECT_NEAR(cost(2640), 10 * wave, wave);
  in.occupancy = {1, 8, 0.125, "shared memory"};
  in.counts.global.bulk_sectors = 1;
  EXPECT_NEAR(cost(132), wave + in.calibration.tensor_map_clk / in.profile->clock_ghz, 0.1 * wave);
}

TEST(Estimate, BulkCopiesReadAgainFromL2) {
  EstimateInput in = Streaming();
  const double once = EstimateTime(in).dram_bytes;
  const double time = Time(in);
  in.counts.global.bulk_sectors = in.counts.global.reread_sectors = 10 * 400000;
  EXPECT_GT(Time(in), 2 * time);
  EXPECT_LT(EstimateTime(in).dram_bytes, 1.01 * once + 0.1 * 1320 * 400000 * 32)
      << "most of it comes from L2";
}

TEST(Estimate, UpdatesOfOneAddressWaitForEachOther) {
  const double without = Time(Streaming());
  const auto with = [](uint64_t units, uint32_t blocks) {
    EstimateInput in = Streaming();
    for (uint64_t block = 0; block < 10; ++block) {
      for (uint64_t i = 0; i < 256; ++i)
        in.counts.global.atomic_units.Add(i % units + (blocks == 1 ? 1000 * block : 0), 32);
      in.counts.global.atomic_units.EndBlock();
    }
    return in;
  };
  const EstimateInput shared = with(1, 10);
  EXPECT_GT(Time(shared), 1320 * 256 * 32 * 0.5) << "half a ns each, at least";
  EXPECT_EQ(EstimateTime(shared).limiter, "atomics");
  EXPECT_LT(Time(with(256, 10)), 0.1 * Time(shared)) << "spread over memory";
  EXPECT_LT(Time(with(1, 1)), 1.5 * without) << "each block has an address of its own";
  EXPECT_NEAR(AtomicNs(shared) / AtomicNs(with(2, 10)), 2, 1e-9);
  Counts both = shared.counts;
  both += shared.counts;
  EXPECT_NEAR(both.global.atomic_units.MostPasses(1),
              2 * shared.counts.global.atomic_units.MostPasses(1), 1e-6);
}

TEST(Estimate, WhatIsUpdatedIsReadAndWritten) {
  EstimateInput in = Streaming();
  in.counts.global.updated_sectors = in.counts.global.unique_store_sectors;
  in.footprint_bytes /= 2;
  EXPECT_NEAR(EstimateTime(in).dram_bytes, EstimateTime(Streaming()).dram_bytes, 1);
}

TEST(Estimate, WhatAllBlocksReadComesFromL1) {
  EstimateInput in = Streaming();
  in.resources.registers = 32;
  in.occupancy = {2, 16, 0.25, "shared memory"};
  in.counts.global.unique_load_sectors = 10 * 2048;
  in.counts.global.unique_store_sectors = 0;
  in.counts.global.common_load_sectors = 1024;
  in.footprint_bytes = (1320.0 + 1) * 1024 * 32;
  in.calibration.l2_gbps = 100;
  const double shared = Time(in);
  in.counts.async_copy_bytes = 10 * 2048 * 32;
  in.calibration.l2_async_gbps = 100;
  const double past_l1 = Time(in);
  in.counts.async_copy_bytes = 0;
  in.counts.global.common_load_sectors = 0;
  const double own = Time(in);
  EXPECT_LT(shared, 0.65 * own) << "half of it is there already";
  EXPECT_GT(past_l1, 0.9 * own);
  in.counts.global.common_load_sectors = 1024;
  in.shape.dynamic_shared_bytes = 110 << 10;
  EXPECT_GT(Time(in), 0.7 * own) << "shared memory leaves little of L1";
}

TEST(Estimate, WhatIsInL1PassesNoPort) {
  EstimateInput in = Streaming();
  in.shape.grid.x = 132000;
  in.occupancy = {1, 8, 0.125, "registers"};
  in.counts.global.unique_store_sectors = 0;
  in.counts.issued = in.counts.global
                         .wavefronts = in.counts.pipe_uses[static_cast<size_t>(Pipe::kFma)] = 10;
  in.counts.path = {10 * 500, 10 * 500};
  in.footprint_bytes = 4096 * 32;
  in.calibration.l2_gbps = 1e9;
  EXPECT_EQ(EstimateTime(in).limiter, "L2 port");
  const double own = Time(in);
  in.counts.global.common_load_sectors = 4096;
  EXPECT_LT(Time(in), 0.5 * own);
}

/// `ncu` says what the driver gives to shared memory: 228 KB of an H200 to 25 blocks of 8 KB, 132
/// KB to 24 of 4 KB.
TEST(Estimate, SharedMemoryForAllBlocksThatFitIsTakenFromL1) {
  EstimateInput in = Streaming();
  const auto kilobytes = [&](int shared, int blocks) {
    in.shape.dynamic_shared_bytes = static_cast<uint32_t>(shared);
    in.occupancy.blocks_per_sm = blocks;
    return static_cast<double>(
               L1SectorsPerBlock(*in.profile, in.resources, in.shape, in.occupancy)) /
           32;
  };
  in.shape.grid.x = 132;  // one block on each SM
  EXPECT_EQ(kilobytes(8192, 25), 256 - 228);
  EXPECT_EQ(kilobytes(4112, 24), 256 - 132);
  EXPECT_EQ(kilobytes(0, 20), 256 - 32);
  in.shape.grid.x = 264;
  EXPECT_EQ(kilobytes(4112, 24), (256 - 132) / 2.0);
}

TEST(Estimate, WhatAllBlocksReadStaysInL2) {
  EstimateInput in = Streaming();
  in.shape.dynamic_shared_bytes = 28 << 10;  // L1 is too small for it
  in.footprint_bytes = 1320.0 * 4096 * 32;   // more than L2
  const double own = EstimateTime(in).dram_bytes;
  in.counts.global.unique_load_sectors += 10 * 1024;
  const double by_some = EstimateTime(in).dram_bytes;
  in.counts.global.common_load_sectors = 1024;
  const double by_all = EstimateTime(in).dram_bytes;
  EXPECT_LT(by_all, by_some);
  EXPECT_NEAR(by_all / own, 1, 0.01);
}

TEST(Estimate, BlocksThatReadTheSameMeetInSmallCaches) {
  EstimateInput in = Streaming();
  static DeviceProfile small = *FindProfile("H200");
  small.l2_bytes = 4 << 20;
  in.profile = &small;
  // Each block reads its sectors ten times, and no L1 keeps them meanwhile.
  in.counts.global.unique_store_sectors = 0;
  in.counts.global.l1_hit_sectors = 10 * 9 * 4096;
  in.counts.global.reuse_distance = in.counts.global.l1_hit_sectors * 4096;
  const double bytes = 1320.0 * 4096 * 32;
  in.footprint_bytes = bytes;
  const double own = EstimateTime(in).dram_bytes;
  EXPECT_GT(own, 7 * bytes);
  in.footprint_bytes = bytes / 100;
  const double shared = EstimateTime(in).dram_bytes;
  EXPECT_LT(shared, 0.1 * own);
}

TEST(Estimate, OneRoundOfLoadsIsHiddenByNothing) {
  EstimateInput in = Streaming();
  in.shape.grid.x = 132;
  in.counts.path = {10 * 5000, 10 * (5000 + in.calibration.dram_clk - in.calibration.l2_clk)};
  in.counts.global.unique_store_sectors = 0;
  in.footprint_bytes = 132.0 * 4096 * 32;
  const auto part = [](const Estimate& estimate, const std::string& name) {
    for (const Estimate::Part& one : estimate.parts) {
      if (one.name == name) return one.ns;
    }
    return 0.0;
  };
  const auto bytes_and_blocks = [&](const Estimate& e) {
    return std::max(part(e, "DRAM"), part(e, "L2")) + part(e, "SMs") + part(e, "block launches");
  };
  const auto together = [&](const Estimate& e) {
    return e.time_ns - part(e, "launch") - part(e, "first instructions");
  };
  const Estimate once = EstimateTime(in);
  EXPECT_NEAR(together(once), bytes_and_blocks(once), 1);
  in.counts.async_copy_bytes = 10 * 4096 * 32;
  in.shape.dynamic_shared_bytes = 4096 * 32;
  const Estimate prefetched = EstimateTime(in);
  EXPECT_NEAR(together(prefetched), bytes_and_blocks(prefetched), 1)
      << "there is nothing to fetch ahead of";
  in.shape.dynamic_shared_bytes = 4096 * 4;
  const Estimate in_eighths = EstimateTime(in);
  EXPECT_LT(together(in_eighths), 0.95 * bytes_and_blocks(in_eighths));
  in.shape.dynamic_shared_bytes = 4;
  const Estimate all_the_time = EstimateTime(in);
  const double memory = part(all_the_time, "DRAM"), sms = part(all_the_time, "SMs");
  EXPECT_GT(together(all_the_time), std::cbrt(std::pow(memory, 3) + std::pow(sms, 3)))
      << "memory waits while all store";
}

TEST(Estimate, WhatIsAskedAheadKeepsMemoryAtWork) {
  EstimateInput in = Streaming();
  in.shape.grid.x = 132 * 8;
  const auto hidden = [&](double waits) {
    constexpr double kPath = 60000;
    in.counts.path = {10 * (kPath - waits * (in.calibration.dram_clk - in.calibration.l2_clk)),
                      10 * kPath};
    return Time(in);
  };
  const double one_by_one = hidden(120), in_pairs = hidden(60), many = hidden(15);
  EXPECT_NEAR(hidden(100), one_by_one, 0.01 * one_by_one) << "less than DRAM brings meanwhile";
  EXPECT_LT(in_pairs, 0.97 * one_by_one);
  EXPECT_LT(many, 0.97 * in_pairs);
}

TEST(Estimate, NamesWhatLimits) {
  EstimateInput in = Streaming();
  in.counts.pipe_uses[static_cast<size_t>(Pipe::kSfu)] = 10 * 4000000;
  EXPECT_EQ(EstimateTime(in).limiter, "special functions");
  in = Streaming();
  in.counts.tensor.mma_work = 1e13;
  EXPECT_EQ(EstimateTime(in).limiter, "tensor cores");
  in = Streaming();
  in.counts.shared.wavefronts = 1000000000;
  EXPECT_EQ(EstimateTime(in).limiter, "shared memory and L1");
  in = Streaming();
  in.counts = {};
  in.blocks_executed = 10;
  EXPECT_EQ(EstimateTime(in).limiter, "launch");
}

TEST(Estimate, FewLoadStoreUnitsTakeTurns) {
  const DeviceProfile ampere = *FindProfile("RTX-A4000"), datacenter = *FindProfile("A100");
  EXPECT_EQ(LatenciesOf(ampere, Calibration::Expected(ampere), 100).memory_turns, 2u);
  EXPECT_EQ(LatenciesOf(datacenter, Calibration::Expected(datacenter), 100).memory_turns, 1u);
  EstimateInput in = Streaming();
  in.counts.shared.requests = in.counts.shared.wavefronts = 10 * 1000000;
  const double all = Time(in);
  DeviceProfile few = *in.profile;
  few.lsu_per_clk = 16;
  in.profile = &few;
  EXPECT_NEAR(Time(in) / all, 2, 0.1);
  in.counts.shared.wavefronts *= 2;
  EXPECT_NEAR(Time(in) / all, 2, 0.1) << "conflicts between the halves of a warp cost nothing more";
}

TEST(Estimate, TuringMovesHalfAsManyBytesAClock) {
  const DeviceProfile turing = *FindProfile("RTX-2080-Ti");
  EXPECT_EQ(LatenciesOf(turing, Calibration::Expected(turing), 100).memory_turns, 1u);
  EstimateInput in = Streaming();
  in.counts.shared.requests = 10 * 1000000;
  in.counts.shared.issued_wavefronts = 10 * 4000000;
  const double all = Time(in);
  DeviceProfile narrow = *in.profile;
  narrow.l1_bytes_per_clk = 64;
  in.profile = &narrow;
  EXPECT_NEAR(Time(in) / all, 2, 0.1);
}

TEST(Estimate, SpillsThatL1CannotHoldPassIt) {
  EstimateInput in = Streaming();
  in.counts.shared.issued_wavefronts = in.counts.spilled_words = 10 * 500000;
  in.resources.local_bytes = 16;
  const Estimate held = EstimateTime(in);
  in.resources.local_bytes = 200;
  const Estimate in_l2 = EstimateTime(in);
  EXPECT_GT(in_l2.time_ns, 1.1 * held.time_ns);
  EXPECT_EQ(in_l2.dram_bytes, held.dram_bytes);
  in.resources.local_bytes = 1024;
  EXPECT_GT(EstimateTime(in).dram_bytes, 2 * held.dram_bytes) << "more than L2 holds";
  const auto clk = [&] {
    return SpillClk(*in.profile, in.calibration, in.resources, in.shape, in.occupancy);
  };
  EXPECT_GT(clk(), 0.8 * in.calibration.l2_clk);
  in.resources.local_bytes = 16;
  EXPECT_EQ(clk(), in.calibration.l1_clk);
}

TEST(Estimate, WarpsThatRarelyMeetHideEachOther) {
  EstimateInput in = Streaming();
  in.occupancy.blocks_per_sm = 1;
  in.counts.path = {10 * 100000, 10 * 100000};
  in.counts.issued = 10 * 300000;
  const double never = Time(in);
  in.counts.barriers = 10 * 8;
  EXPECT_NEAR(Time(in) / never, 1, 0.02);
  in.counts.barriers = 10 * 8 * 200;
  EXPECT_GT(Time(in), 1.1 * never);
  in.counts.barriers = 0;
  in.counts.global.bulk_sectors = 1;
  EXPECT_GT(Time(in), 1.1 * never) << "all wait for the same bulk copies";
}

/// A block without shared memory leaves a Turing SM 64 KB of L1: its driver gives 32 KB away at
/// least.
TEST(Estimate, SharedMemoryTakesWhatTheArchitectureAllows) {
  const auto kilobytes = [](const char* gpu, uint32_t shared) {
    const LaunchShape shape{{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, shared};
    const Occupancy one{1, 1, 0, ""};
    return L1SectorsPerBlock(*FindProfile(gpu), {}, shape, one) * 32 / 1024;
  };
  EXPECT_EQ(kilobytes("T4", 0), 64u);
  EXPECT_EQ(kilobytes("T4", 33000), 32u);
  EXPECT_EQ(kilobytes("V100", 0), 128u);
  EXPECT_EQ(kilobytes("V100", 70000), 32u);
  EXPECT_EQ(kilobytes("RTX-A4000", 70000), 28u);
  EXPECT_EQ(kilobytes("A100", 70000), 92u);
  EXPECT_EQ(kilobytes("H200", 200000), 28u);
}

TEST(Estimate, EveryProfileGivesATime) {
  for (const DeviceProfile& profile : KnownProfiles()) {
    EstimateInput in = Streaming();
    in.profile = &profile;
    in.calibration = Calibration::Expected(profile);
    EXPECT_TRUE(Time(in) > 0 && Time(in) < 1e9) << profile.name << ' ' << Time(in);
  }
}

}  // namespace
}  // namespace atunner::vgpu
