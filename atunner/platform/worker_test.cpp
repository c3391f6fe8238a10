#include "atunner/platform/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>

#include "atunner/jobs/testing/fake_services_test.h"
#include "atunner/platform/job_files.h"

namespace atunner::platform {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

/// A server that remembers what it was told.
class FakeLink : public ServerLink {
 public:
  Result<std::optional<LeasedJob>> Lease(const WorkerDescription&, const Wanted&) override {
    if (jobs.empty()) return std::nullopt;
    LeasedJob job = jobs.front();
    jobs.pop_front();
    return job;
  }
  Result<bool> HeartBeat(const LeasedJob&) override {
    ++beats;
    if (lost) return Invalid("gone", "lease");
    return cancel.load();
  }
  Status SendEvents(const LeasedJob&, int64_t batch, const Json& sent, const Json&) override {
    const std::scoped_lock lock(mutex);
    batches.push_back(batch);
    for (const Json& event : sent) events.push_back(event["type"].get<std::string>());
    return {};
  }
  Result<Path> Fetch(const std::string& upload, const Path& folder) override {
    if (upload != "up-1") return Fail(ErrorCode::kNotFound, "no upload", "upload");
    ATUNNER_RETURN_IF_ERROR(WriteFileAtomic(folder / "source.cu", source));
    return folder / "source.cu";
  }
  Status PutArtifact(const LeasedJob&, const std::string& path, const Path& file) override {
    EXPECT_TRUE(Exists(file));
    artifacts.push_back(path);
    return {};
  }
  Result<std::string> SendRun(const LeasedJob&, const RunRecord& run,
                              const std::vector<Trial>& trials) override {
    runs.push_back(RunFromJson(RunJson(run)).value());
    trial_count += trials.size();
    return "kept-" + run.id;
  }
  Status End(const LeasedJob&, const std::string& ended, const Json& ended_result,
             const Json& ended_error, bool again) override {
    state = ended;
    result = ended_result;
    error = ended_error;
    retry = again;
    return {};
  }

  std::deque<LeasedJob> jobs;
  std::string source;
  std::atomic<bool> cancel = false;
  std::atomic<bool> lost = false;
  std::atomic<int> beats = 0;
  std::mutex mutex;
  std::vector<int64_t> batches;
  std::vector<std::string> events;
  std::vector<std::string> artifacts;
  std::vector<RunRecord> runs;
  size_t trial_count = 0;
  std::string state;
  Json result;
  Json error;
  bool retry = false;
};

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() {
    options_.description.name = "w";
    options_.folder = folder_.path();
    options_.heart_beat_seconds = 0.01;
  }
  bool RunOne(const char* request, std::stop_token stop = {}) {
    link_.jobs.push_back({"j-1", "lease", ParseJson(request).value()});
    Worker worker(options_, link_, fakes_.services, log_);
    return worker.RunOne(stop).value();
  }

  static constexpr const char* kRelu = R"({"kind": "operator", "operator": "relu",
    "shapes": [[1024, 64]], "target_gpu": "A100", "budget": {"trials": 3}})";
  TemporaryDirectory folder_;
  jobs::FakeServices fakes_;
  FakeLink link_;
  WorkerOptions options_;
  std::vector<std::string> lines_;
  WorkerLog log_ = [this](const std::string& line) { lines_.push_back(line); };
};

TEST_F(WorkerTest, RunsAJobAndSaysAllAboutIt) {
  ASSERT_TRUE(RunOne(kRelu));
  EXPECT_EQ(link_.state, "succeeded") << link_.error;
  EXPECT_EQ(link_.result["used_trials"], 3);
  EXPECT_EQ(link_.result["evidence"], "predicted");
  EXPECT_TRUE(link_.result["best"].is_object());
  EXPECT_THAT(link_.events, Contains("run_started"));
  EXPECT_THAT(link_.events, Contains("run_finished"));
  EXPECT_EQ(std::ranges::count(link_.events, "trial"), 3);
  EXPECT_TRUE(std::ranges::is_sorted(link_.batches));
  EXPECT_THAT(link_.artifacts, Contains("manifest.json"));
  ASSERT_EQ(link_.runs.size(), 1);
  EXPECT_THAT(link_.runs[0].command, HasSubstr("atunner optimize --operator relu"));
  EXPECT_EQ(link_.trial_count, 3);
  const std::string kept = "kept-" + link_.runs[0].id;
  EXPECT_EQ(link_.result["runs"], Json::array({kept})) << "the server's id, not the worker's";
  EXPECT_EQ(link_.result["best"]["run"], kept);
  EXPECT_TRUE(FilesBelow(folder_.path()).empty());
}

TEST_F(WorkerTest, ASharedStoreNeedsNoRuns) {
  options_.shares_store = true;
  ASSERT_TRUE(RunOne(kRelu));
  EXPECT_THAT(link_.runs, IsEmpty());
}

TEST_F(WorkerTest, NoJobIsNoWork) {
  Worker worker(options_, link_, fakes_.services, log_);
  EXPECT_FALSE(worker.RunOne({}).value());
}

TEST_F(WorkerTest, EndsAfterItsJobsOrWithoutWork) {
  options_.most_jobs = 1;
  for (const char* id : {"j-1", "j-2"})
    link_.jobs.push_back({id, "lease", ParseJson(kRelu).value()});
  Worker one(options_, link_, fakes_.services, log_);
  ASSERT_TRUE(one.Run({}));
  EXPECT_EQ(link_.jobs.size(), 1);
  options_.most_jobs = 0;
  options_.most_idle_seconds = 5;
  Worker idle(options_, link_, fakes_.services, log_);
  ASSERT_TRUE(idle.Run({}));
  EXPECT_TRUE(link_.jobs.empty());
}

TEST_F(WorkerTest, AWrongJobFailsWithItsField) {
  ASSERT_TRUE(RunOne(R"({"kind": "operator", "operator": "relu", "shapes": [[1024, 64]],
    "target_gpu": "A100", "strategy": "nothing"})"));
  EXPECT_EQ(link_.state, "failed");
  EXPECT_EQ(link_.error["where"], "strategy");
  EXPECT_FALSE(link_.retry);
  ASSERT_TRUE(RunOne(R"({"kind": "source", "upload": "up-2", "target_gpu": "A100"})"));
  EXPECT_EQ(link_.error["code"], "not-found");
  link_.source = "#include \"/etc/passwd\"\n";
  ASSERT_TRUE(RunOne(R"({"kind": "source", "upload": "up-1", "target_gpu": "A100"})"));
  EXPECT_EQ(link_.error["where"], "upload");
}

TEST_F(WorkerTest, ACancelledJobKeepsItsBest) {
  link_.cancel = true;
  ASSERT_TRUE(RunOne(R"({"kind": "operator", "operator": "relu", "shapes": [[1024, 64]],
    "target_gpu": "A100", "budget": {"trials": 1000000}})"));
  EXPECT_EQ(link_.state, "cancelled");
}

TEST_F(WorkerTest, AStoppedWorkerGivesItsJobBack) {
  std::stop_source stop;
  stop.request_stop();
  ASSERT_TRUE(RunOne(kRelu, stop.get_token()));
  EXPECT_EQ(link_.state, "queued");
}

TEST_F(WorkerTest, AJobThatAnotherWorkerHasIsLeft) {
  link_.lost = true;
  ASSERT_TRUE(RunOne(R"({"kind": "operator", "operator": "relu", "shapes": [[1024, 64]],
    "target_gpu": "A100", "budget": {"trials": 1000000}})"));
  EXPECT_EQ(link_.state, "");
  EXPECT_THAT(lines_, Contains(HasSubstr("another worker")));
}

TEST(ServerLink, ProblemsBecomeErrors) {
  http::Response response;
  response.status = 422;
  response.body = R"({"detail": "2 fields are wrong", "errors": [
    {"field": "operator", "detail": "unknown", "hint": "softmax?"},
    {"field": "seed", "detail": "negative"}]})";
  const Error error = ErrorOf(response);
  EXPECT_EQ(error.code, ErrorCode::kInvalidInput);
  EXPECT_EQ(error.where, "operator");
  EXPECT_EQ(error.what, "unknown; seed: negative");
  EXPECT_EQ(error.hint, "softmax?");
  response.status = 404;
  response.body = "no JSON";
  EXPECT_EQ(ErrorOf(response).code, ErrorCode::kNotFound);
}

TEST(ServerLink, RunsThatLackSomethingAreRefused) {
  EXPECT_EQ(RunFromJson(Json::array()).error().where, "run");
  EXPECT_EQ(RunFromJson({{"id", "x"}}).error().where, "run.key");
}

}  // namespace
}  // namespace atunner::platform
