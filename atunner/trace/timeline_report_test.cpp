#include "atunner/trace/timeline_report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "atunner/trace/page/timeline_page.h"
#include "atunner/trace/trace_comparison.h"

namespace atunner::trace {
namespace {

const Path kData = ATUNNER_SOURCE_DIR "/atunner/trace/testdata";

TEST(TimelineReport, GoldenReportOfAStep) {
  const auto report = ReportTimeline(kData / "step.json");
  ASSERT_TRUE(report) << report.error().ToString();
  Json json = ToJson(*report);
  json["traces"][0].erase("source");
  const std::string text = DumpJson(json, 1) + "\n";
  const Path golden = kData / "step.report.json";
  if (std::getenv("ATUNNER_WRITE_GOLDEN") != nullptr) ASSERT_TRUE(WriteFileAtomic(golden, text));
  EXPECT_EQ(text, ReadFile(golden).value());
}

TEST(TimelineReport, KinetoAndNsysAgree) {
  const auto kineto = ReportTimeline(kData / "step.json");
  const auto nsys = ReportTimeline(kData / "step.sqlite");
  ASSERT_TRUE(kineto);
  ASSERT_TRUE(nsys) << nsys.error().ToString();
  const DeviceTime a = kineto->analyses[0].Total(), b = nsys->analyses[0].Total();
  EXPECT_EQ(a.window, b.window);
  EXPECT_EQ(a.busy, b.busy);
  EXPECT_EQ(a.exposed_communication, b.exposed_communication);
  EXPECT_EQ(a.idle, b.idle);
}

TEST(TimelineReport, RanksOfAFolder) {
  TemporaryDirectory folder;
  const std::string text = ReadFile(kData / "step.json").value();
  std::string other = text;
  other.replace(other.find("\"rank\": 0"), 9, "\"rank\": 1");
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "b.json", text));
  ASSERT_TRUE(WriteFileAtomic(folder.path() / "a.json", other));
  const auto report = ReportTimeline(folder.path());
  ASSERT_TRUE(report) << report.error().ToString();
  ASSERT_EQ(report->ranks.ranks.size(), 2u);
  EXPECT_EQ(report->ranks.ranks[0].rank, 0);
  EXPECT_EQ(report->ranks.collectives, 3u);
  EXPECT_EQ(report->ranks.straggler, -1);
  ASSERT_FALSE(report->findings.empty());
  EXPECT_TRUE(report->findings[0].evidence.ends_with("(on 2 ranks)"));
  EXPECT_EQ(ToJson(*report)["comparison_of_ranks"]["ranks"].size(), 2u);
}

TEST(TraceComparison, JudgesSteps) {
  const auto before = ReportTimeline(kData / "step.json");
  ASSERT_TRUE(before);
  EXPECT_EQ(Compare(*before, *before).verdict, TraceVerdict::kEqual);
  TemporaryDirectory folder;
  std::string text = ReadFile(kData / "step.json").value();
  for (size_t at = 0; (at = text.find("\"dur\": 560", at)) != std::string::npos;)
    text.replace(at, 10, "\"dur\": 460");
  const Path path = folder.path() / "after.json";
  ASSERT_TRUE(WriteFileAtomic(path, text));
  const auto after = ReportTimeline(path);
  ASSERT_TRUE(after);
  const TraceComparison faster = Compare(*before, *after);
  EXPECT_EQ(faster.verdict, TraceVerdict::kFaster);
  EXPECT_EQ(faster.compared, "median step");
  EXPECT_EQ(faster.time.before, 560'000);
  EXPECT_EQ(faster.time.after, 460'000);
  EXPECT_EQ(Compare(*after, *before).verdict, TraceVerdict::kSlower);
  EXPECT_EQ(ToJson(faster)["verdict"], "faster");
}

TEST(TimelinePage, HoldsEveryEventAndEscapesNames) {
  const auto report = ReportTimeline(kData / "step.json");
  ASSERT_TRUE(report);
  const std::string page = TimelinePage(report->analyses, report->findings);
  EXPECT_NE(page.find("GPU 0 stream 7"), std::string::npos);
  EXPECT_NE(page.find("softmax_warp_forward&lt;float, 10&gt;"), std::string::npos);
  EXPECT_NE(page.find("softmax_warp_forward\\u003cfloat, 10>"), std::string::npos);
  // Columns of 8 bytes for each event, as base64.
  const size_t begin = page.find("id=\"start\">") + 11;
  const size_t length = page.find("</script>", begin) - begin;
  EXPECT_EQ(length, (report->timelines[0]->size() * 8 + 2) / 3 * 4);
}

}  // namespace
}  // namespace atunner::trace
