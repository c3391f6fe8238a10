#include "atunner/device/calibration.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/device/profiles.h"

namespace atunner {
namespace {

Path Folder() {
  const Path folder = Path(::testing::TempDir()) / "calibration_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(Calibration, ComesBackFromItsJson) {
  Calibration made = Calibration::Expected(*FindProfile("H200"));
  made.source = "calibrated today";
  made.block_ns = 0.125;
  const auto read = CalibrationFromJson(ToJson(made));
  ASSERT_TRUE(read);
  EXPECT_EQ(ToJson(*read), ToJson(made));
}

TEST(Calibration, EveryConstantMustBeThere) {
  const Json whole = ToJson(Calibration::Expected(*FindProfile("A100")));
  for (const auto& [name, value] : whole.items()) {
    if (!value.is_number()) continue;
    Json broken = whole;
    broken.erase(name);
    EXPECT_FALSE(CalibrationFromJson(broken)) << name;
    broken[name] = -1;
    EXPECT_FALSE(CalibrationFromJson(broken)) << name;
  }
  EXPECT_FALSE(CalibrationFromJson(Json::array()));
}

TEST(Calibration, IsTakenFromTheProfilesFile) {
  const DeviceProfile profile = *FindProfile("H200");
  const Path folder = Folder();
  const auto none = LoadCalibration(folder.string(), profile);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->source, "not calibrated");
  Calibration made = *none;
  made.source = "calibrated today";
  made.l2_clk = 123;
  const Path file = folder / "H200.json";
  ASSERT_TRUE(
      WriteFileAtomic(file, DumpJson(Json{{"profile", 1}, {kCalibrationKey, ToJson(made)}})));
  const auto found = LoadCalibration(folder.string(), profile);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->l2_clk, 123);
  EXPECT_EQ(found->source, "calibrated today");
  Json earlier = ToJson(made);
  earlier.erase("bulk_clk");
  ASSERT_TRUE(WriteFileAtomic(file, DumpJson(Json{{kCalibrationKey, earlier}})));
  EXPECT_EQ(LoadCalibration(folder.string(), profile)->bulk_clk,
            Calibration::Expected(profile).bulk_clk);
  EXPECT_EQ(LoadCalibration(folder.string(), profile)->l2_clk, 123);
  ASSERT_TRUE(WriteFileAtomic(file, "{\"calibration\": {}}"));
  EXPECT_FALSE(LoadCalibration(folder.string(), profile));
  ASSERT_TRUE(WriteFileAtomic(file, "{\"profile\": {}}"));
  EXPECT_EQ(LoadCalibration(folder.string(), profile)->source, "not calibrated");
}

TEST(Calibration, ALockedClockTakesTheBoostedOnes) {
  const Path folder = Folder();
  Calibration made = Calibration::Expected(*FindProfile("H200"));
  made.source = "calibrated today";
  made.l2_clk = 300, made.dram_clk = 700, made.l2_gbps = 9000, made.dram_gbps = 4000;
  ASSERT_TRUE(
      WriteFileAtomic(folder / "H200.json", DumpJson(Json{{kCalibrationKey, ToJson(made)}})));
  const auto half = LoadCalibration(folder.string(), *FindProfile("H200@990"));
  ASSERT_TRUE(half);
  EXPECT_EQ(half->source, "calibrated today");
  EXPECT_NEAR(half->l2_gbps, 4500, 1e-6);
  EXPECT_EQ(half->dram_gbps, 4000);
  EXPECT_EQ(half->l2_clk, 300);
  EXPECT_NEAR(half->dram_clk, 500, 1e-6) << "DRAM's share of the latency is half as many cycles";
  const DeviceProfile unknown = *FindProfile("A100@705");
  const auto expected = LoadCalibration(folder.string(), unknown);
  ASSERT_TRUE(expected);
  EXPECT_NEAR(expected->l2_gbps, Calibration::Expected(unknown).l2_gbps, 1e-6);
}

}  // namespace
}  // namespace atunner
