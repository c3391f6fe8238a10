// The profile table against data sheets, and occupancy against CUDA's own calculator.
#include "atunner/device/profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "atunner/model/value/capabilities.h"

namespace atunner {
namespace {

using testing::HasSubstr;

struct Sheet {
  const char* name;
  double fp32_tflops;
  double fp64_tflops;
  double tensor_tflops;  ///< float16, dense
  double dram_gbps;
};

// As the vendor's data sheets and white papers state them; float64 of GA102 and AD102 is 1/64 of
// float32.
constexpr Sheet kSheets[] = {
    {"V100", 15.7, 7.8, 125, 900},
    {"T4", 8.1, 0.254, 65, 320},
    {"A100", 19.5, 9.7, 312, 2039},
    {"A100-40GB", 19.5, 9.7, 312, 1555},
    {"A30", 10.3, 5.2, 165, 933},
    {"A10", 31.2, 0.488, 125, 600},
    {"A40", 37.4, 0.584, 149.7, 696},
    {"RTX-3090", 35.6, 0.556, 142, 936},
    {"RTX-4090", 82.6, 1.29, 330.3, 1008},
    {"L4", 30.3, 0.473, 121, 300},
    {"L40S", 91.6, 1.43, 362, 864},
    {"H100", 67, 34, 989, 3350},
    {"H100-PCIE", 51.2, 25.6, 756, 2039},
    {"H200", 67, 34, 989, 4800},
    {"RTX-2080-Ti", 13.4, 0.42, 107.6, 616},
    {"RTX-A4000", 19.2, 0.3, 76.7, 448},
    {"RTX-A6000", 38.7, 0.605, 154.8, 768},
};

TEST(Profiles, AClockMayBeLocked) {
  const DeviceProfile boosted = FindProfile("A100").value();
  const DeviceProfile locked = FindProfile("a100@765").value();
  EXPECT_EQ(locked.name, "A100@765");
  EXPECT_DOUBLE_EQ(locked.clock_ghz, 0.765);
  EXPECT_NEAR(locked.l2_gbps / boosted.l2_gbps, 0.765 / 1.41, 1e-9);
  EXPECT_EQ(locked.dram_gbps, boosted.dram_gbps);
  EXPECT_EQ(locked.l2_latency, boosted.l2_latency);
  EXPECT_NEAR((locked.dram_latency - locked.l2_latency) / locked.clock_ghz,
              (boosted.dram_latency - boosted.l2_latency) / boosted.clock_ghz, 1e-6)
      << "DRAM takes the same time";
  EXPECT_EQ(FindProfile("A100-PCIE-40GB@1095MHz").value().clock_ghz, 1.095);
  EXPECT_EQ(FindProfile("A100@1095 MHz").value().name, "A100@1095");
  EXPECT_EQ(FindProfile(locked.name).value().clock_ghz, locked.clock_ghz);
  for (const char* wrong :
       {"A100@", "A100@fast", "A100@765GHz", "A100@7", "A100@99999", "A100@-765"}) {
    const auto none = FindProfile(wrong);
    ASSERT_FALSE(none) << wrong;
    EXPECT_THAT(none.error().ToString(), HasSubstr("A100@765"));
  }
  EXPECT_THAT(FindProfile("Z9@765").error().ToString(), HasSubstr("unknown GPU 'Z9'"));
}

TEST(Profiles, PeaksAreThoseOfTheDataSheets) {
  for (const Sheet& sheet : kSheets) {
    const DeviceProfile p = FindProfile(sheet.name).value();
    const auto tflops = [&](DType dtype, bool tensor) { return p.PeakFlops(dtype, tensor) / 1e12; };
    EXPECT_NEAR(tflops(DType::kFloat32, false) / sheet.fp32_tflops, 1, 0.03) << sheet.name;
    EXPECT_NEAR(tflops(DType::kFloat64, false) / sheet.fp64_tflops, 1, 0.03) << sheet.name;
    EXPECT_NEAR(p.dram_gbps / sheet.dram_gbps, 1, 0.03) << sheet.name;
    const double tensor = tflops(DType::kFloat16, true) / sheet.tensor_tflops;
    if (p.cc_major < 9) {
      EXPECT_NEAR(tensor, 1, 0.03) << sheet.name;
    } else {
      // Sheets of Hopper state tensor rates at a lower clock than the one it may run at; floors
      // need the higher.
      EXPECT_GE(tensor, 1) << sheet.name;
      EXPECT_LE(tensor, 1.1) << sheet.name;
    }
  }
}

TEST(Profiles, PeakIsLanesTimesSmsTimesTwoTimesClock) {
  for (const DeviceProfile& p : KnownProfiles()) {
    EXPECT_DOUBLE_EQ(p.PeakFlops(DType::kFloat32, false),
                     2 * p.fp32_per_clk * p.sms * p.clock_ghz * 1e9)
        << p.name;
    EXPECT_DOUBLE_EQ(p.PeakFlops(DType::kBFloat16, true), p.PeakFlops(DType::kFloat16, true))
        << p.name;
    EXPECT_GE(p.PeakFlops(DType::kFloat16, true), p.PeakFlops(DType::kFloat16, false)) << p.name;
    EXPECT_GE(p.PeakFlops(DType::kFloat32, true), p.PeakFlops(DType::kFloat32, false)) << p.name;
    EXPECT_GE(p.PeakFlops(DType::kInt8, true),
              p.PeakFlops(DType::kFloat16, true) * (p.cc_major >= 8 ? 2 : 0))
        << p.name;
  }
}

TEST(Profiles, RowsAreSound) {
  std::set<std::string> names;
  for (const DeviceProfile& p : KnownProfiles()) {
    SCOPED_TRACE(p.name);
    EXPECT_TRUE(names.insert(p.name).second) << "twice in the table";
    EXPECT_FALSE(p.source.empty());
    EXPECT_LE(p.shared_per_block + p.shared_reserved_per_block, p.shared_per_sm);
    EXPECT_LT(p.shared_per_sm, p.l1_per_sm);
    EXPECT_TRUE(std::ranges::is_sorted(p.shared_carveouts));
    EXPECT_EQ(p.shared_carveouts.back() * 1024, p.shared_per_sm);
    EXPECT_LT(p.l1_latency, p.l2_latency);
    EXPECT_LT(p.l2_latency, p.dram_latency);
    EXPECT_GT(p.l2_gbps, p.dram_gbps);
    EXPECT_GT(p.l2_bytes, int64_t{p.sms} * 32 * 1024 / 2) << "no L2 is that small";
    EXPECT_GT(p.dram_bytes, int64_t{10} << 30);
    EXPECT_EQ(p.max_warps_per_sm % p.schedulers_per_sm, 0);
    EXPECT_GT(p.mma_sync_share, 0);
    EXPECT_EQ(p.l1_bytes_per_clk, p.cc_major == 7 && p.cc_minor == 5 ? 64 : 128);
    EXPECT_LE(p.mma_sync_share, 1);
#define ATUNNER_PROFILE_FIELD(type, field, unit, meaning) \
  if constexpr (!std::is_same_v<type, std::string>) EXPECT_GE(p.field, type{}) << #field;
#include "atunner/model/value/device_profile.def"
#undef ATUNNER_PROFILE_FIELD
  }
  EXPECT_GE(names.size(), 15u);
}

/// One character per capability, '1' where compute capability `major`.`minor` has it.
std::string Flags(int major, int minor) {
  const Capabilities can = CapabilitiesOf(major, minor);
  std::string flags;
  for (bool each : {can.cp_async, can.mbarrier, can.mma_16bit, can.mma_fp8, can.mma_int4,
                    can.clusters, can.tma, can.programmatic_launch, can.wgmma, can.tcgen05})
    flags += each ? '1' : '0';
  return flags;
}

TEST(CapabilitiesTest, FollowFromTheComputeCapability) {
  // cp_async, mbarrier, mma_16bit, mma_fp8, mma_int4, clusters, tma, programmatic_launch, wgmma,
  // tcgen05
  EXPECT_EQ(Flags(7, 0), "0000000000");
  EXPECT_EQ(Flags(7, 5), "0000100000");
  EXPECT_EQ(Flags(8, 0), "1110100000");
  EXPECT_EQ(Flags(8, 6), "1110100000");
  EXPECT_EQ(Flags(8, 9), "1111100000");
  EXPECT_EQ(Flags(9, 0), "1111011110");
  EXPECT_EQ(Flags(10, 0), "1111011101");
}

TEST(Profiles, AreFoundByNameAliasAndTheDriversName) {
  for (const DeviceProfile& p : KnownProfiles()) {
    EXPECT_EQ(FindProfile(p.name)->name, p.name);
    EXPECT_EQ(FindProfile(p.full_name)->name, p.name);
    ASSERT_NE(MatchDriverName(p.full_name), nullptr) << p.full_name;
    EXPECT_EQ(MatchDriverName(p.full_name)->name, p.name);
  }
  EXPECT_EQ(FindProfile("a100")->name, "A100");
  EXPECT_EQ(FindProfile("nvidia a100")->name, "A100");
  EXPECT_EQ(FindProfile("rtx 4090")->name, "RTX-4090");
  EXPECT_EQ(FindProfile("4090")->name, "RTX-4090");
  EXPECT_EQ(FindProfile("H100-SXM")->name, "H100");
  EXPECT_EQ(FindProfile("RTX 2080 Ti")->l2_bytes, int64_t{5632} << 10);
  EXPECT_EQ(FindProfile("A6000")->name, "RTX-A6000");
  EXPECT_EQ(MatchDriverName("NVIDIA H2000"), nullptr);
  const auto unknown = FindProfile("A1000");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(unknown.error().hint, HasSubstr("A100"));
  EXPECT_FALSE(FindProfile("").has_value());
}

Occupancy Of(const char* gpu, uint32_t registers, uint32_t threads, uint32_t dynamic_shared,
             uint32_t fixed_shared = 0) {
  KernelResources resources;
  resources.registers = registers;
  resources.static_shared_bytes = fixed_shared;
  LaunchShape shape;
  shape.block.x = threads;
  shape.dynamic_shared_bytes = dynamic_shared;
  return ComputeOccupancy(FindProfile(gpu).value(), resources, shape);
}

TEST(OccupancyTest, ByHand) {
  // 64 warps per SM; 32 registers make 1024 per warp, and 16 of these fill one of four partitions.
  Occupancy full = Of("A100", 32, 256, 0);
  EXPECT_EQ(full.blocks_per_sm, 8);
  EXPECT_EQ(full.warps_per_sm, 64);
  EXPECT_DOUBLE_EQ(full.share, 1);
  // 33 registers are given as 40 (1280 per warp): 12 per partition.
  Occupancy rounded = Of("A100", 33, 256, 0);
  EXPECT_EQ(rounded.blocks_per_sm, 6);
  EXPECT_EQ(rounded.limiter, "registers");
  EXPECT_DOUBLE_EQ(rounded.share, 0.75);
  // Three warps a block, eight per partition: 32 warps, ten blocks and two warps over.
  EXPECT_EQ(Of("A100", 64, 96, 0).blocks_per_sm, 10);
  // 164 KiB: each block takes its 16 KiB and one more for the system.
  Occupancy shared = Of("A100", 16, 128, 16 << 10);
  EXPECT_EQ(shared.blocks_per_sm, 9);
  EXPECT_EQ(shared.limiter, "shared memory");
  EXPECT_EQ(Of("A100", 16, 128, 8 << 10, 8 << 10).blocks_per_sm, 9) << "static and dynamic alike";
  EXPECT_EQ(Of("A100", 16, 128, 163 << 10).blocks_per_sm, 1);
  EXPECT_EQ(Of("A100", 16, 128, 164 << 10).blocks_per_sm, 0);
  // Tiny blocks: 32 of them, however little they need.
  Occupancy tiny = Of("A100", 16, 32, 0);
  EXPECT_EQ(tiny.blocks_per_sm, 32);
  EXPECT_EQ(tiny.limiter, "blocks");
  EXPECT_DOUBLE_EQ(tiny.share, 0.5);
  EXPECT_EQ(Of("RTX-4090", 16, 1024, 0).blocks_per_sm, 1) << "48 warps hold one block of 32";
  EXPECT_EQ(Of("A100", 255, 512, 0).blocks_per_sm, 0) << "16 warps of 8192 registers do not fit";
}

struct Known {
  const char* gpu;
  uint32_t registers;
  uint32_t threads;
  uint32_t shared;
  int blocks;
};

// Drawn at random, answered by cudaOccMaxActiveBlocksPerMultiprocessor of CUDA 13.0's
// cuda_occupancy.h.
constexpr Known kKnown[] = {
    {"V100", 106, 314, 10664, 1},
    {"V100", 87, 321, 12553, 1},
    {"V100", 61, 334, 0, 2},
    {"V100", 112, 192, 10463, 2},
    {"V100", 42, 272, 16360, 4},
    {"T4", 157, 28, 0, 12},
    {"T4", 95, 52, 0, 10},
    {"T4", 23, 217, 1049, 4},
    {"T4", 175, 252, 9532, 1},
    {"T4", 86, 107, 13048, 5},
    {"A100", 135, 344, 20683, 1},
    {"A100", 129, 100, 20853, 3},
    {"A100", 150, 137, 0, 2},
    {"A100", 159, 384, 0, 1},
    {"A100", 37, 137, 9447, 9},
    {"A10", 30, 255, 0, 6},
    {"A10", 169, 368, 1640, 0},
    {"A10", 136, 225, 6718, 1},
    {"A10", 21, 10, 2880, 16},
    {"A10", 41, 346, 16586, 3},
    {"RTX-4090", 106, 198, 20643, 2},
    {"RTX-4090", 144, 46, 5298, 6},
    {"RTX-4090", 83, 373, 22580, 1},
    {"RTX-4090", 136, 54, 0, 6},
    {"RTX-4090", 134, 328, 0, 1},
    {"H200", 31, 401, 2253, 4},
    {"H200", 152, 355, 0, 1},
    {"H200", 65, 310, 15960, 2},
    {"H200", 93, 195, 15366, 2},
    {"H200", 20, 357, 9267, 5},
    {"B200", 39, 268, 4438, 5},
    {"B200", 32, 416, 0, 4},
    {"B200", 91, 237, 17764, 2},
    {"B200", 171, 201, 0, 1},
    {"B200", 47, 40, 0, 20},
};

TEST(OccupancyTest, IsWhatCudasCalculatorSays) {
  for (const Known& known : kKnown) {
    EXPECT_EQ(Of(known.gpu, known.registers, known.threads, known.shared).blocks_per_sm,
              known.blocks)
        << known.gpu << ": " << known.registers << " registers, " << known.threads << " threads, "
        << known.shared << " bytes";
  }
}

}  // namespace
}  // namespace atunner
