#include "atunner/capture/record_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "atunner/capture/applied.h"

namespace atunner::capture {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Orders, OfRecordingComeBack) {
  RecordOrder order{"app.capture", {7, 1 << 20, 1 << 22}};
  const auto read = ReadRecordOrder(DumpJson(ToJson(order)));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->capture, "app.capture");
  EXPECT_EQ(read->limits.launches_of_kernel, 7u);
  EXPECT_EQ(read->limits.snapshot_bytes, 1u << 20);
  EXPECT_EQ(read->limits.all_snapshots_bytes, 1u << 22);
}

TEST(Orders, LimitsHaveDefaults) {
  EXPECT_EQ(ReadRecordOrder(R"({"capture": "x"})").value().limits.launches_of_kernel, 4u);
  EXPECT_EQ(ReadApplyOrder(R"({"folders": ["x"]})").value().compared_bytes, uint64_t{4} << 30);
}

TEST(Orders, WhatIsWrongIsNamed) {
  EXPECT_THAT(ReadRecordOrder("{}").error().ToString(), HasSubstr("capture"));
  EXPECT_THAT(ReadRecordOrder("{").error().ToString(), HasSubstr(kRecordVariable));
  EXPECT_THAT(ReadApplyOrder(R"({"folders": 3})").error().ToString(), HasSubstr(kApplyVariable));
}

TEST(Orders, OfApplyingComeBack) {
  const auto read = ReadApplyOrder(DumpJson(ToJson(ApplyOrder{{"a", "b"}, "report", 5})));
  ASSERT_TRUE(read);
  EXPECT_THAT(read->folders, ElementsAre("a", "b"));
  EXPECT_EQ(read->report, "report");
  EXPECT_EQ(read->compared_bytes, 5u);
}

AppliedLaunch Launch(uint64_t launches, Verdict verdict, const std::string& reason = "") {
  return {"k", {{4}, {32}}, launches, launches, 0, verdict, 0.5, reason};
}

TEST(Reports, OfProcessesAreMergedAndTheWorstVerdictCounts) {
  Json first = ToJson(AppliedReport{{Launch(1, Verdict::kEqual)}, {"one"}});
  const Json again = ToJson(AppliedReport{{Launch(5, Verdict::kEqual)}, {"one"}});
  Json other = ToJson(AppliedReport{{Launch(7, Verdict::kDifferent, "why")}, {"one", "two"}});
  other["process"] = 1;
  const auto report = ReadAppliedReport(DumpJson(first) + "\n" + DumpJson(other) + "\n" +
                                        DumpJson(again) + "\n{\"process\": 3, \"la");
  ASSERT_TRUE(report);
  EXPECT_THAT(report->launches, ElementsAre(Launch(12, Verdict::kDifferent, "why")));
  EXPECT_THAT(report->errors, ElementsAre("one", "two"));
  EXPECT_FALSE(ReadAppliedReport("{\"process\": 3}"));
}

}  // namespace
}  // namespace atunner::capture
