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
  ASSERT_TRUE(WriteFileAtomic(file, DumpJson(Json{{"profile", 1}, {kCalibrationKey, ToJson(made)}})));
  const auto found = LoadCalibration(folder.string(), profile);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->l2_clk, 123);
  EXPECT_EQ(found->source, "calibrated today");
  Json earlier = ToJson(made);
  earlier.erase("bulk_clk");
  ASSERT_TRUE(WriteFileAtomic(file, DumpJson(Json{{kCalibrationKey, earlier}})));
  EXPECT_EQ(LoadCalibration(folder.string(), profile)->bulk_clk, Calibration::Expected(profile).bulk_clk);
  EXPECT_EQ(LoadCalibration(folder.string(), profile)->l2_clk, 123);
  ASSERT_TRUE(WriteFileAtomic(file, "{\"calibration\": {}}"));
  EXPECT_FALSE(LoadCalibration(folder.string(), profile));
  ASSERT_TRUE(WriteFileAtomic(file, "{\"profile\": {}}"));
  EXPECT_EQ(LoadCalibration(folder.string(), profile)->source, "not calibrated");
}

}  // namespace
}  // namespace atunner
