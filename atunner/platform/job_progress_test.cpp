#include "atunner/platform/job_progress.h"

#include <gtest/gtest.h>

namespace atunner::platform {
namespace {

jobs::TrialEvent TrialOf(int64_t number, std::optional<double> ns) {
  jobs::TrialEvent event;
  event.trial.number = number;
  event.trial.verdict.kind = ns ? VerdictKind::kCorrect : VerdictKind::kWrongResult;
  if (ns) event.trial.estimate = Estimate{.time_ns = *ns};
  event.configuration = "n=" + std::to_string(number);
  event.best_ns = ns;
  event.trials_done = number;
  event.seconds = static_cast<double>(number);
  return event;
}

jobs::RunStartedEvent StartedOf(const std::string& run) {
  return {.space_size = 9,
          .budget = {},
          .evidence = Evidence::kPredicted,
          .text = "",
          .run = run,
          .device = "NVIDIA A100"};
}

TEST(JobProgress, NothingIsKnownAtFirst) {
  const Json json = JobProgress().ToJson();
  EXPECT_EQ(json["best"], Json());
  EXPECT_EQ(json["device"], Json());
  EXPECT_EQ(json["speedup"], Json());
  EXPECT_EQ(json["used_trials"], 0);
}

TEST(JobProgress, TheBestSoFarAndTheBudgetUsed) {
  JobProgress progress;
  progress.Add(StartedOf("r1"));
  progress.Add(jobs::BaselineEvent{{.name = "naive", .estimate = Estimate{.time_ns = 300}}});
  progress.Add(TrialOf(1, 200));
  progress.Add(TrialOf(2, 100));
  progress.Add(TrialOf(3, 150));
  progress.Add(TrialOf(4, std::nullopt));
  const Json json = progress.ToJson();
  EXPECT_EQ(json["best"],
            Json({{"run", "r1"}, {"trial", 2}, {"configuration", "n=2"}, {"time_ns", 100.0}}));
  EXPECT_EQ(json["baseline"]["name"], "naive");
  EXPECT_EQ(json["speedup"], 3.0);
  EXPECT_EQ(json["evidence"], "predicted");
  EXPECT_EQ(json["used_trials"], 4);
  EXPECT_EQ(json["used_seconds"], 4.0);
}

TEST(JobProgress, ThePartsOfAJobAddUpButTheirTimesDoNotMix) {
  JobProgress progress;
  progress.Add(StartedOf("r1"));
  progress.Add(TrialOf(5, 10));
  progress.Add(StartedOf("r2"));
  EXPECT_EQ(progress.ToJson()["best"], Json());
  progress.Add(TrialOf(2, 500));
  const Json json = progress.ToJson();
  EXPECT_EQ(json["best"]["run"], "r2");
  EXPECT_EQ(json["used_trials"], 7);
  EXPECT_EQ(json["runs"], Json({"r1", "r2"}));
}

TEST(JobProgress, TheFinalsHaveTheLastWord) {
  JobProgress progress;
  progress.Add(StartedOf("r1"));
  progress.Add(TrialOf(1, 100));
  jobs::RunFinishedEvent finished;
  finished.result.report.best = TrialOf(3, 120).trial;
  finished.result.report.baselines = {{.name = "naive", .estimate = Estimate{.time_ns = 240}}};
  finished.result.summary = {{"best_configuration", {{"tile", 4}, {"mode", "a"}}}};
  progress.Add(finished);
  const Json json = progress.ToJson();
  EXPECT_EQ(json["best"]["trial"], 3);
  EXPECT_EQ(json["best"]["configuration"], "tile=4, mode=a");
  EXPECT_EQ(json["speedup"], 2.0);
}

TEST(JobProgress, EventsOfTrialsAreShort) {
  JobProgress progress;
  progress.Add(StartedOf("r1"));
  const Json shown = progress.Shown(TrialOf(7, 42));
  EXPECT_EQ(KindOf(shown), "trial");
  EXPECT_EQ(shown["run"], "r1");
  EXPECT_EQ(shown["number"], 7);
  EXPECT_EQ(shown["time_ns"], 42.0);
  EXPECT_EQ(shown["verdict"], "correct");
  EXPECT_LT(DumpJson(shown).size(), 400);
  EXPECT_EQ(KindOf(progress.Shown(jobs::NoteEvent{"text"})), "note");
  EXPECT_EQ(KindOf(Json::object()), "note");
}

}  // namespace
}  // namespace atunner::platform
