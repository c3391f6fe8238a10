// What special registers say of the GPU and of the time: as a real GPU of the profile would, so
// that a kernel cannot tell the virtual GPU from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "atunner/base/wall_clock.h"
#include "atunner/device/profiles.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::vgpu {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

/// A kernel whose lanes store the 64-bit values %v0, %v1 … that `body` computes.
std::string Kernel(const std::string& body, int values) {
  std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
      ".reg .b32 %r<16>;\n.reg .pred %p<4>;\n.reg .b64 %to, %at, %v<16>;\n" +
      body +
      "\nld.param.u64 %to, [out];\nmov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %ntid.x;\n"
      "mov.u32 %r2, %tid.x;\nmad.lo.u32 %r0, %r0, %r1, %r2;\nmad.wide.u32 %at, %r0, " +
      std::to_string(8 * values) + ", %to;\n";
  for (int i = 0; i < values; ++i)
    text += "st.global.u64 [%at+" + std::to_string(8 * i) + "], %v" + std::to_string(i) + ";\n";
  return text + "ret;\n}\n";
}

/// Moves special registers of 32 bits into %v0, %v1 …
std::string Read32(const std::vector<std::string>& names) {
  std::string body;
  for (size_t i = 0; i < names.size(); ++i)
    body += "mov.u32 %r4, " + names[i] + ";\ncvt.u64.u32 %v" + std::to_string(i) + ", %r4;\n";
  return body;
}

class SpecialRegisters : public testing::Test {
 protected:
  /// The values by thread of the grid.
  std::vector<std::vector<uint64_t>> Run(const std::string& body, int values, uint32_t blocks,
                                         uint32_t threads, uint32_t cluster = 1) {
    CompiledModule compiled;
    compiled.ptx = Kernel(body, values);
    auto module = gpu_.Load(compiled).value();
    const uint64_t count = uint64_t{blocks} * threads * static_cast<uint64_t>(values);
    auto out = gpu_.Allocate(8 * count).value();
    const KernelArg args[] = {KernelArg::Address(out->address())};
    const LaunchShape shape{{blocks, 1, 1}, {threads, 1, 1}, {cluster, 1, 1}, 0};
    const LaunchOutcome outcome = gpu_.Launch(*module, "k", shape, args, {}).value();
    EXPECT_TRUE(outcome.completed()) << outcome.message;
    std::vector<uint64_t> flat(count);
    EXPECT_TRUE(gpu_.CopyOut(std::as_writable_bytes(std::span(flat)), out->address()));
    std::vector<std::vector<uint64_t>> rows;
    for (uint64_t i = 0; i < count; i += static_cast<uint64_t>(values))
      rows.emplace_back(flat.begin() + static_cast<ptrdiff_t>(i),
                        flat.begin() + static_cast<ptrdiff_t>(i) + values);
    return rows;
  }
  VirtualGpu gpu_{FindProfile("H100").value()};
  const uint64_t sms_ = static_cast<uint64_t>(gpu_.profile().sms);
};

TEST_F(SpecialRegisters, BlocksSpreadOverAllSms) {
  const auto rows = Run(Read32({"%smid", "%nsmid"}), 2, 4000, 32);
  std::set<uint64_t> first;
  std::map<uint64_t, int> all;
  for (size_t i = 0; i < rows.size(); i += 32) {
    EXPECT_EQ(rows[i][1], sms_);
    EXPECT_LT(rows[i][0], sms_);
    if (i / 32 < sms_) first.insert(rows[i][0]);
    ++all[rows[i][0]];
  }
  EXPECT_EQ(first.size(), sms_);
  for (const auto& [sm, blocks] : all)
    EXPECT_NEAR(blocks, 4000.0 / static_cast<double>(sms_), 20) << sm;
}

TEST_F(SpecialRegisters, AWaveAfterTheFirstIsShuffledAndLaunchesDiffer) {
  const auto order = [&] {
    std::vector<uint64_t> sms;
    const auto rows = Run(Read32({"%smid"}), 1, 3000, 1024);
    for (size_t i = 0; i < rows.size(); i += 1024) sms.push_back(rows[i][0]);
    return sms;
  };
  const auto one = order();
  EXPECT_NE(one, order());
  const std::vector<uint64_t> wave(one.begin(), one.begin() + static_cast<ptrdiff_t>(sms_));
  const auto later = one.begin() + static_cast<ptrdiff_t>(2 * sms_);  // two blocks in an SM
  EXPECT_NE(wave, std::vector<uint64_t>(later, later + static_cast<ptrdiff_t>(sms_)));
}

TEST_F(SpecialRegisters, BlocksOfAClusterHaveSmsOfTheirOwn) {
  const auto rows = Run(Read32({"%smid"}), 1, 64, 32, 8);
  for (size_t cluster = 0; cluster < 8; ++cluster) {
    std::set<uint64_t> sms;
    for (size_t i = 0; i < 8; ++i) sms.insert(rows[(cluster * 8 + i) * 32][0]);
    EXPECT_EQ(sms.size(), 8u);
    EXPECT_LT(*sms.rbegin(), sms_);
  }
}

TEST_F(SpecialRegisters, WarpsHavePlacesOfTheirOwnInAnSm) {
  const auto rows = Run(Read32({"%smid", "%warpid", "%nwarpid", "%gridid"}), 4,
                        static_cast<uint32_t>(3 * sms_), 256);
  std::set<std::pair<uint64_t, uint64_t>> places;
  for (size_t i = 0; i < rows.size(); i += 32) {
    EXPECT_EQ(rows[i][2], 64u);
    EXPECT_LT(rows[i][1], 64u);
    EXPECT_EQ(rows[i][3], 1u);
    places.emplace(rows[i][0], rows[i][1]);
  }
  EXPECT_EQ(places.size(), rows.size() / 32);
  EXPECT_EQ(Run(Read32({"%gridid"}), 1, 1, 1)[0][0], 2u);
}

TEST_F(SpecialRegisters, ClocksAdvanceWithWhatRuns) {
  const auto rows = Run(
      "mov.u64 %v0, %clock64;\nmov.u64 %v1, %clock64;\nld.param.u64 %to, [out];\n"
      "st.global.u64 [%to], %v0;\nld.volatile.global.u64 %v3, [%to];\nadd.u64 %v3, %v3, 1;\n"
      "mov.u64 %v2, %clock64;\n",
      4, 1, 1);
  const uint64_t read = rows[0][1] - rows[0][0];
  EXPECT_GE(read, 2u);
  EXPECT_LE(read, 40u);
  EXPECT_GE(rows[0][2] - rows[0][1], 100u);  // a load is no shorter
  EXPECT_GT(rows[0][0], uint64_t{1} << 33);  // a GPU has been running for hours
}

TEST_F(SpecialRegisters, LanesReadOneClock) {
  const auto rows = Run("mov.u64 %v0, %clock64;\nmov.u64 %v1, %globaltimer;\n", 2, 1, 32);
  for (const auto& row : rows) EXPECT_EQ(row, rows[0]);
}

TEST_F(SpecialRegisters, HalvesOfAClockFitTogether) {
  const auto rows = Run(
      "mov.u64 %v0, %globaltimer;\nmov.u32 %r4, %globaltimer_hi;\ncvt.u64.u32 %v1, %r4;\n"
      "mov.u64 %v2, %clock64;\nmov.u32 %r4, %clock_hi;\ncvt.u64.u32 %v3, %r4;\n",
      4, 1, 1);
  EXPECT_NEAR(static_cast<double>(rows[0][0] >> 32), static_cast<double>(rows[0][1]), 1);
  EXPECT_NEAR(static_cast<double>(rows[0][2] >> 32), static_cast<double>(rows[0][3]), 1);
}

TEST_F(SpecialRegisters, TheGlobalTimerTellsTheTimeOfDay) {
  const auto time = [&] { return Run("mov.u64 %v0, %globaltimer;\n", 1, 1, 1)[0][0]; };
  const uint64_t one = time();
  const uint64_t now = NanosecondsSince1970();
  EXPECT_GT(one, now - 600 * kSecond);
  EXPECT_LT(one, now + 60 * kSecond);
  EXPECT_EQ(one % 32, 0u);
  EXPECT_GT(time(), one);
  VirtualGpu other(FindProfile("H100").value());
  EXPECT_NE(one, 0u);
}

/// Warp 0 sleeps; warp 1 finds after the barrier that as much time has passed.
TEST_F(SpecialRegisters, SleepingTakesTime) {
  const auto rows = Run(
      "mov.u64 %v0, %globaltimer;\nmov.u64 %v2, %clock64;\nmov.u32 %r3, %tid.x;\n"
      "setp.ge.u32 %p0, %r3, 32;\n@%p0 bra MEET;\nnanosleep.u32 1000000;\nMEET: bar.sync 0;\n"
      "mov.u64 %v1, %globaltimer;\nmov.u64 %v3, %clock64;\n",
      4, 2, 64);
  for (const auto& row : rows) {
    EXPECT_GE(row[1] - row[0], 500'000u);
    EXPECT_LE(row[1] - row[0], 2'000'000u);
    EXPECT_GE(row[3] - row[2], 500'000u);
  }
  // The next launch begins later.
  EXPECT_GE(Run("mov.u64 %v0, %globaltimer;\n", 1, 1, 1)[0][0], rows[0][1]);
}

TEST_F(SpecialRegisters, ShortSleepsAreShort) {
  const auto rows = Run("mov.u64 %v0, %clock64;\nnanosleep.u32 100;\nmov.u64 %v1, %clock64;\n", 2,
                        1, 1);
  EXPECT_GE(rows[0][1] - rows[0][0], 100u);
  EXPECT_LE(rows[0][1] - rows[0][0], 1000u);
}

TEST_F(SpecialRegisters, SharedMemoryAndTheDriversRegisters) {
  const auto rows = Run(
      Read32({"%total_smem_size", "%dynamic_smem_size", "%aggr_smem_size", "%envreg3", "%envreg6"}),
      5, 1, 1);
  EXPECT_THAT(rows[0], testing::ElementsAre(0, 0, 1024, 0, 1));
}

/// A loop that waits for time to pass ends.
TEST_F(SpecialRegisters, ALoopOverTheClockEnds) {
  const auto rows = Run(
      "mov.u64 %v0, %clock64;\nmov.u64 %v2, 0;\nAGAIN: mov.u64 %v1, %clock64;\n"
      "sub.u64 %v3, %v1, %v0;\nadd.u64 %v2, %v2, 1;\nsetp.lt.u64 %p0, %v3, 100000;\n"
      "@%p0 bra AGAIN;\n",
      4, 4, 64);
  for (const auto& row : rows) {
    EXPECT_GE(row[1] - row[0], 100'000u);
    EXPECT_LT(row[2], 20'000u);
    EXPECT_EQ(row[2], rows[0][2]);  // as often in every warp and block
  }
}

}  // namespace
}  // namespace atunner::vgpu
