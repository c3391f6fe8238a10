#include "atunner/device/metric_host.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace atunner {
namespace {

class MetricHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (!SharedCupti()) GTEST_SKIP() << SharedCupti().error().ToString();
  }
};

TEST_F(MetricHosts, KnowTheChips) {
  const auto chips = ChipsOfCupti();
  ASSERT_TRUE(chips) << chips.error().ToString();
  for (const char* chip : {"GA100", "GH100", "AD102"})
    EXPECT_NE(std::ranges::find(*chips, chip), chips->end()) << chip;
  const auto other = MetricHost::Open("GX999");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("GX999"), std::string::npos);
}

TEST_F(MetricHosts, CountPasses) {
  const std::vector<std::string> one = {"dram__bytes.sum"};
  const auto host = MetricHost::Open("GH100");
  ASSERT_TRUE(host) << host.error().ToString();
  const auto config = (*host)->Configure(one);
  ASSERT_TRUE(config) << config.error().ToString();
  EXPECT_EQ(config->passes, 1U);
  EXPECT_FALSE(config->image.empty());
}

TEST_F(MetricHosts, RefuseAnUnknownMetric) {
  const std::vector<std::string> names = {"dram__bytes.sum", "smsp__inst_executed.sum",
                                          "sm__inst_executed_pipe_fp32.sum"};
  const auto host = MetricHost::Open("GH100");
  ASSERT_TRUE(host) << host.error().ToString();
  EXPECT_FALSE((*host)->Configure(names));
  const auto known = MetricsOf("GH100", names);
  ASSERT_TRUE(known) << known.error().ToString();
  EXPECT_EQ(*known, std::vector<std::string>(names.begin(), names.begin() + 2));
}

TEST(Cupti, SaysWhyNobodyMayCount) {
  const Cupti api{.text = [](cupti::ResultCode, const char** text) -> cupti::ResultCode {
    *text = "CUPTI_ERROR_X";
    return 0;
  }};
  EXPECT_TRUE(api.Check(cupti::kSuccess, "start"));
  const Status denied = api.Check(cupti::kInsufficientPrivileges, "start");
  ASSERT_FALSE(denied);
  EXPECT_NE(denied.error().hint.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
  EXPECT_NE(api.Check(cupti::kHardwareBusy, "start").error().what.find("another process"),
            std::string::npos);
  EXPECT_EQ(api.Check(7, "start").error().what, "CUPTI cannot start: CUPTI_ERROR_X");
}

}  // namespace
}  // namespace atunner
