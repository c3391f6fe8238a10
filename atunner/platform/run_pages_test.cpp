#include "atunner/platform/run_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "atunner/store/store.h"

namespace atunner::platform {
namespace {

using testing::ElementsAre;

class RunPagesTest : public testing::Test {
 protected:
  RunPagesTest() {
    space_.parameters = {{"tile", {int64_t{1}, int64_t{2}, int64_t{4}}, "tiles"},
                         {"mode", {std::string("a"), std::string("b")}, ""}};
    store_ = Store::Open(file_).value();
    bool resumed = false;
    const RunRecord run{"run-1",
                        "key",
                        "atunner optimize",
                        "2026-01-01T00:00:00Z",
                        "running",
                        "predicted",
                        "A100",
                        R"({"name": "softmax"})",
                        DumpJson(ToJson(space_)),
                        "{}",
                        0};
    (void)store_->OpenRun(run, resumed);
    RunRecord other = run;
    other.id = "run-2";
    other.key = "key2";
    other.created = "2026-01-02T00:00:00Z";
    other.device = "H200";
    (void)store_->OpenRun(other, resumed);
    other.status = "finished";
    (void)store_->UpdateRun(other);
    for (int64_t i = 0; i < 6; ++i) Append(i);
    pages_ = RunPages::Open(file_).value();
  }
  /// Trial i + 1 has tile 1, 2, 4, 1, 2, 4 and mode a, a, a, b, b, b; the last one is wrong.
  void Append(int64_t i) {
    Trial trial;
    trial.number = i + 1;
    const Configuration configuration{
        {Value(int64_t{1} << (i % 3)), Value(std::string(i < 3 ? "a" : "b"))}};
    trial.candidate = MakeCandidate(space_, configuration, {"search:random", ""});
    trial.verdict.kind = i == 5 ? VerdictKind::kWrongResult : VerdictKind::kCorrect;
    if (i != 5) trial.estimate = Estimate{.time_ns = static_cast<double>(100 - 10 * i)};
    ASSERT_TRUE(store_->AppendTrial("run-1", trial));
  }
  std::vector<int> Numbers(const TrialQuery& query) {
    std::vector<int> numbers;
    const Json page = pages_->Trials("run-1", query).value();
    for (const Json& trial : page["trials"]) numbers.push_back(trial["number"].get<int>());
    return numbers;
  }

  TemporaryDirectory folder_;
  Path file_ = folder_.path() / "runs.db";
  ParameterSpace space_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<RunPages> pages_;
};

TEST_F(RunPagesTest, RunsNewestFirst) {
  const Json page = pages_->Runs({}).value();
  EXPECT_EQ(page["total"], 2);
  EXPECT_EQ(page["runs"][0]["id"], "run-2");
  EXPECT_EQ(page["runs"][0]["best_ns"], Json());
  EXPECT_EQ(page["runs"][1]["task"], "softmax");
  EXPECT_EQ(page["runs"][1]["trials"], 6);
  EXPECT_EQ(page["runs"][1]["best_ns"], 60.0);
  EXPECT_EQ(page["runs"][1]["status"], "running");
  EXPECT_EQ(pages_->Runs({.status = "finished"}).value()["total"], 1);
  EXPECT_EQ(pages_->Runs({.text = "H200"}).value()["runs"][0]["id"], "run-2");
  EXPECT_EQ(pages_->Runs({.limit = 1, .offset = 1}).value()["runs"][0]["id"], "run-1");
}

TEST_F(RunPagesTest, ARunOfADeadProcessIsInterrupted) {
  store_.reset();
  EXPECT_EQ(pages_->Run("run-1").value()["status"], "interrupted");
}

TEST_F(RunPagesTest, OneRunWithItsSpace) {
  const Json run = pages_->Run("run-1").value();
  EXPECT_EQ(run["space"]["parameters"][0]["name"], "tile");
  EXPECT_EQ(run["summary"], Json());
  EXPECT_EQ(pages_->Run("none").error().code, ErrorCode::kNotFound);
}

TEST_F(RunPagesTest, TrialsAreSorted) {
  EXPECT_THAT(Numbers({}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Numbers({.sort = "-number"}), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(Numbers({.sort = "time_ns"}), ElementsAre(5, 4, 3, 2, 1, 6));
  EXPECT_THAT(Numbers({.sort = "-time_ns"}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Numbers({.sort = "-p.tile"}), ElementsAre(3, 6, 2, 5, 1, 4));
  EXPECT_EQ(pages_->Trials("run-1", {.sort = "p.none"}).error().where, "sort");
  EXPECT_EQ(pages_->Trials("run-1", {.sort = "number; DROP TABLE runs"}).error().where, "sort");
}

TEST_F(RunPagesTest, TrialsAreFiltered) {
  EXPECT_THAT(Numbers({.verdict = "correct"}), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(Numbers({.proposer = "none"}), ElementsAre());
  EXPECT_THAT(Numbers({.min_ns = 70, .max_ns = 90}), ElementsAre(2, 3, 4));
  EXPECT_THAT(Numbers({.parameters = {{"tile", "2"}}}), ElementsAre(2, 5));
  EXPECT_THAT(Numbers({.parameters = {{"tile", "2"}, {"mode", "b"}}}), ElementsAre(5));
  EXPECT_THAT(Numbers({.parameters = {{"mode", "b' OR '1'='1"}}}), ElementsAre());
  EXPECT_EQ(pages_->Trials("run-1", {.parameters = {{"x", "1"}}}).error().where, "p.x");
  const Json page = pages_->Trials("run-1", {.limit = 2, .offset = 1}).value();
  EXPECT_EQ(page["total"], 6);
  EXPECT_EQ(page["trials"].size(), 2);
}

TEST_F(RunPagesTest, TrialsHaveNamedParameters) {
  const Json trial = pages_->Trials("run-1", {.limit = 1}).value()["trials"][0];
  EXPECT_EQ(trial["configuration"], Json({{"tile", 1}, {"mode", "a"}}));
  EXPECT_EQ(trial["time_ns"], 100.0);
  EXPECT_EQ(trial["verdict"], "correct");
  EXPECT_EQ(trial["registers"], Json());
  EXPECT_EQ(pages_->Trial("run-1", 3).value()["number"], 3);
  EXPECT_EQ(pages_->Trial("run-1", 9).error().where, "number");
}

TEST_F(RunPagesTest, NothingIsWritten) {
  EXPECT_FALSE(RunPages::Open(folder_.path() / "none.db"));
  EXPECT_FALSE(Exists(folder_.path() / "none.db"));
}

}  // namespace
}  // namespace atunner::platform
