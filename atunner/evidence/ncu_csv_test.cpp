#include "atunner/evidence/ncu_csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "atunner/base/files.h"

namespace atunner::evidence {
namespace {

constexpr const char* kDetails = R"csv(==PROF== Connected to process 4242 (/tmp/app)
==PROF== Profiling "add" - 0: 0%....50%....100% - 9 passes
result 12, 13
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"
"0","4242","app","127.0.0.1","add(float *, int)","1","7","(256, 1, 1)","(4096, 1, 1)","0","9.0","Command line profiler metrics","dram__bytes.sum","Mbyte","1,234.5","","","","",""
"0","4242","app","127.0.0.1","add(float *, int)","1","7","(256, 1, 1)","(4096, 1, 1)","0","9.0","Command line profiler metrics","gpu__time_duration.sum","usecond","9.5","","","","",""
"0","4242","app","127.0.0.1","add(float *, int)","1","7","(256, 1, 1)","(4096, 1, 1)","0","9.0","SpeedOfLight","","","","Bottleneck","WRN","Memory is used ""more"", than compute","global","12.5"
"1","4242","app","127.0.0.1","mul(float *)","1","7","(256, 1, 1)","(1, 1, 1)","0","9.0","Command line profiler metrics","gpu__time_duration.sum","nsecond","2,100","","","","",""
)csv";

TEST(NcuCsv, ReadsDetailsWithUnitsAndRules) {
  const auto launches = ParseNcuCsv(kDetails);
  ASSERT_TRUE(launches) << launches.error().ToString();
  ASSERT_EQ(launches->size(), 2U);
  const MeasuredLaunch& add = launches->front();
  EXPECT_EQ(add.kernel, "add(float *, int)");
  EXPECT_DOUBLE_EQ(*ValueOf(add.counters, Counter::kDramBytes), 1234.5e6);
  EXPECT_DOUBLE_EQ(*ValueOf(add.counters, Counter::kTime), 9500);
  EXPECT_EQ(add.counters.at(Counter::kTime).origin, Origin::kMeasured);
  ASSERT_EQ(add.rules.size(), 1U);
  EXPECT_EQ(add.rules[0].text, "Memory is used \"more\", than compute");
  EXPECT_DOUBLE_EQ(add.rules[0].speedup_percent, 12.5);
  EXPECT_DOUBLE_EQ(*ValueOf((*launches)[1].counters, Counter::kTime), 2100);
}

TEST(NcuCsv, ReadsOlderDetailsWithKernelTime) {
  const auto launches = ParseNcuCsv(
      R"csv("ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream","Section Name","Metric Name","Metric Unit","Metric Value"
"3","1","a","h","k(int)","2021-Jan-01 10:00:00","1","7","Command line profiler metrics","smsp__inst_executed.sum","inst","17"
)csv");
  ASSERT_TRUE(launches) << launches.error().ToString();
  ASSERT_EQ(launches->size(), 1U);
  EXPECT_DOUBLE_EQ(*ValueOf(launches->front().counters, Counter::kInstructions), 17);
}

TEST(NcuCsv, ReadsTheSummaryByItsAverages) {
  const auto launches = ParseNcuCsv(
      R"csv("Process ID","Process Name","Host Name","Kernel Name","Block Size","Grid Size","Device","CC","Invocations","Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"
"1","a","h","k(int)","(32, 1, 1)","(1, 1, 1)","0","8.0","3","Command line profiler metrics","gpu__time_duration.sum","usecond","1","3","2"
)csv");
  ASSERT_TRUE(launches) << launches.error().ToString();
  ASSERT_EQ(launches->size(), 1U);
  EXPECT_DOUBLE_EQ(*ValueOf(launches->front().counters, Counter::kTime), 2000);
}

TEST(NcuCsv, ReadsTheRawPageWithItsRowOfUnits) {
  const auto launches = ParseNcuCsv(
      "\"ID\",\"Kernel Name\",\"dram__bytes.sum\",\"launch__grid_size\",\"unknown__metric\"\r\n"
      "\"\",\"\",\"Gbyte\",\"\",\"\"\r\n"
      "\"0\",\"k\",\"1.5\",\"128\",\"9\"\r\n\"1\",\"k\",\"n/a\",\"64\",\"9\"\r\n");
  ASSERT_TRUE(launches) << launches.error().ToString();
  ASSERT_EQ(launches->size(), 2U);
  EXPECT_DOUBLE_EQ(*ValueOf((*launches)[0].counters, Counter::kDramBytes), 1.5e9);
  EXPECT_DOUBLE_EQ(*ValueOf((*launches)[1].counters, Counter::kGrid), 64);
  EXPECT_FALSE(ValueOf((*launches)[1].counters, Counter::kDramBytes));
}

/// What ncu 2025.3.1 printed of three kernels on an H100.
std::vector<MeasuredLaunch> Golden(const std::string& name) {
  const auto text = ReadFile(Path(ATUNNER_SOURCE_DIR) / "atunner/evidence/testdata" / name,
                             1 << 20);
  EXPECT_TRUE(text) << name;
  auto launches = ParseNcuCsv(text.value_or(""));
  EXPECT_TRUE(launches) << name;
  return launches.value_or(std::vector<MeasuredLaunch>());
}

TEST(NcuCsv, ReadsTheLabelsOfTheDetailsPage) {
  const auto launches = Golden("ncu_details.csv");
  ASSERT_EQ(launches.size(), 2U);
  const MeasuredLaunch& banks = launches[1];
  EXPECT_EQ(banks.kernel, "banks(float *, const float *, int)");
  EXPECT_DOUBLE_EQ(*ValueOf(banks.counters, Counter::kTime), 172832);
  EXPECT_DOUBLE_EQ(*ValueOf(banks.counters, Counter::kGrid), 4096);
  EXPECT_DOUBLE_EQ(*ValueOf(banks.counters, Counter::kRegisters), 32);
  EXPECT_DOUBLE_EQ(*ValueOf(banks.counters, Counter::kDramShare), 2.91);
  EXPECT_DOUBLE_EQ(*ValueOf(banks.counters, Counter::kAchievedOccupancy), 89.05);
  const auto rule = std::ranges::find(banks.rules, "LaunchConfiguration", &NcuRule::name);
  ASSERT_NE(rule, banks.rules.end());
  EXPECT_GT(rule->speedup_percent, 0);
}

TEST(NcuCsv, ReadsARawPageOfSelectedMetrics) {
  const auto launches = Golden("ncu_raw.csv");
  ASSERT_EQ(launches.size(), 3U);
  const CounterSet& strided = launches[1].counters;
  EXPECT_DOUBLE_EQ(*ValueOf(strided, Counter::kLoadSectors), 16);
  EXPECT_DOUBLE_EQ(*ValueOf(strided, Counter::kLoadSectorCount), 8388608);
  EXPECT_DOUBLE_EQ(*ValueOf(strided, Counter::kLoadBytes), 8);
  const CounterSet& banks = launches[2].counters;
  EXPECT_DOUBLE_EQ(*ValueOf(banks, Counter::kSharedRequests), 1048576 + 131072);
  EXPECT_DOUBLE_EQ(*ValueOf(banks, Counter::kSharedWavefronts), 33581667 + 131269);
  EXPECT_DOUBLE_EQ(*ValueOf(banks, Counter::kBankConflicts), 32533193);
}

TEST(NcuCsv, ReadsASummaryOfThreeKernels) {
  const auto launches = Golden("ncu_summary.csv");
  ASSERT_EQ(launches.size(), 3U);
  for (const MeasuredLaunch& launch : launches) {
    EXPECT_GT(*ValueOf(launch.counters, Counter::kDramBytes), 1e6) << launch.kernel;
    EXPECT_GT(*ValueOf(launch.counters, Counter::kTime), 1e4) << launch.kernel;
  }
}

TEST(NcuCsv, RefusesOtherTexts) {
  EXPECT_FALSE(ParseNcuCsv(""));
  EXPECT_FALSE(ParseNcuCsv("==ERROR== The user does not have permission\n"));
  EXPECT_FALSE(ParseNcuCsv("\"ID\",\"Kernel Name\",\"Metric Name\n"));
}

}  // namespace
}  // namespace atunner::evidence
