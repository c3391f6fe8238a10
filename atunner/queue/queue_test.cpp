#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "atunner/queue/sqlite_queue.h"

namespace atunner::queue {
namespace {

using testing::ElementsAre;

class QueueTest : public testing::Test {
 protected:
  QueueTest() { Reopen(); }
  void Reopen() {
    queue_.reset();
    queue_ = SqliteQueue::Open(folder_.path() / "queue.db", [this] { return now_; }).value();
  }
  Job Submit(const std::string& name, int priority = 0, const Labels& labels = {}) {
    Submission one;
    one.name = name;
    one.payload = "{}";
    one.priority = priority;
    one.labels = labels;
    return queue_->Submit(one)->job;
  }
  std::optional<Lease> Take(const Labels& labels = {}) {
    return queue_->Take({"worker", labels}, 10).value();
  }
  std::vector<std::string> EventsOf(const std::string& job) {
    std::vector<std::string> texts;
    const std::vector<Event> events = queue_->Events(job, 0, 100).value();
    for (const Event& event : events) texts.push_back(event.type + " " + event.data);
    return texts;
  }

  TemporaryDirectory folder_;
  double now_ = 1000;
  std::unique_ptr<SqliteQueue> queue_;
};

TEST_F(QueueTest, AJobIsTakenOnceAndEndsOnce) {
  const std::string id = Submit("one").id;
  const auto lease = Take();
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->job.id, id);
  EXPECT_EQ(lease->job.state, State::kRunning);
  EXPECT_EQ(lease->job.worker, "worker");
  EXPECT_FALSE(Take());
  ASSERT_TRUE(queue_->End(id, lease->token, {State::kSucceeded, false, "result", ""}));
  ASSERT_TRUE(queue_->End(id, lease->token, {State::kFailed, false, "", "other"}));
  const Job job = queue_->Find(id).value();
  EXPECT_EQ(job.state, State::kSucceeded);
  EXPECT_EQ(job.result, "result");
  EXPECT_FALSE(job.ended.empty());
  EXPECT_THAT(EventsOf(id),
              ElementsAre("state queued", "state running", "state succeeded", "end succeeded"));
}

TEST_F(QueueTest, ACertainJobIsTakenByWhoHasItsLabels) {
  Submit("first", 5);
  const std::string id = Submit("second", 0, {{"gpu", "H200"}}).id;
  EXPECT_FALSE(queue_->TakeJob({"w", {}}, id, 10).value());
  EXPECT_FALSE(queue_->TakeJob({"w", {}}, "unknown", 10).value());
  const auto lease = queue_->TakeJob({"w", {{"gpu", "H200"}}}, id, 10).value();
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->job.id, id);
  EXPECT_FALSE(queue_->TakeJob({"w", {{"gpu", "H200"}}}, id, 10).value()) << "it runs";
}

TEST_F(QueueTest, OnlyAJobThatWaitsIsAbandoned) {
  const Job job = Submit("one");
  EXPECT_FALSE(queue_->Abandon("unknown", 1, "").value());
  EXPECT_FALSE(queue_->Abandon(job.id, job.version + 1, "").value());
  const auto lease = Take();
  EXPECT_FALSE(queue_->Abandon(job.id, job.version, "late").value());
  ASSERT_TRUE(queue_->End(job.id, lease->token, {State::kQueued, false, "", ""}));
  EXPECT_FALSE(queue_->Abandon(job.id, job.version, "late").value());
  EXPECT_TRUE(queue_->Abandon(job.id, queue_->Find(job.id)->version, "why").value());
  EXPECT_EQ(queue_->Find(job.id)->state, State::kFailed);
  EXPECT_EQ(queue_->Find(job.id)->error, "why");
}

TEST_F(QueueTest, TheSameKeyIsTheSameJob) {
  Submission one{.key = "k", .name = "", .payload = "a", .labels = {}};
  const auto first = queue_->Submit(one).value();
  const auto second = queue_->Submit(one).value();
  EXPECT_FALSE(first.repeated);
  EXPECT_TRUE(second.repeated);
  EXPECT_EQ(first.job.id, second.job.id);
  one.payload = "b";
  const auto other = queue_->Submit(one);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().where, kKeyField);
  EXPECT_EQ(queue_->List({})->total, 1);
}

TEST_F(QueueTest, PriorityThenOrderOfSubmission) {
  Submit("first");
  Submit("second");
  Submit("urgent", 5);
  EXPECT_EQ(Take()->job.name, "urgent");
  EXPECT_EQ(Take()->job.name, "first");
  EXPECT_EQ(Take()->job.name, "second");
}

TEST_F(QueueTest, AWorkerNeedsAllLabelsOfAJob) {
  Submit("gpu", 1, {{"gpu", "H200"}});
  Submit("any");
  EXPECT_EQ(Take({{"gpu", "A100"}})->job.name, "any");
  EXPECT_FALSE(Take());
  EXPECT_EQ(Take({{"gpu", "H200"}, {"site", "x"}})->job.name, "gpu");
}

TEST_F(QueueTest, ALateWorkerLosesItsJob) {
  const std::string id = Submit("one").id;
  const auto old = Take();
  now_ += 5;
  EXPECT_FALSE(queue_->Extend(id, old->token, 10).value());
  now_ += 9;
  EXPECT_EQ(queue_->ExpireLeases().value(), 0);
  now_ += 2;
  EXPECT_EQ(queue_->ExpireLeases().value(), 1);
  const auto lease = Take();
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->job.attempts, 2);
  EXPECT_EQ(queue_->Extend(id, old->token, 10).error().where, kLeaseField);
  EXPECT_EQ(queue_->Record(id, old->token, {1, {{"trial", "x"}}, "p"}).error().where, kLeaseField);
  EXPECT_EQ(queue_->End(id, old->token, {}).error().where, kLeaseField);
  EXPECT_EQ(queue_->Find(id)->state, State::kRunning);
  EXPECT_EQ(queue_->Find(id)->progress, "");
}

TEST_F(QueueTest, LostWorkersUseUpNoAttempts) {
  const std::string id = Submit("one").id;
  for (int loss = 1; loss <= 5; ++loss) {
    ASSERT_TRUE(Take()) << loss;
    now_ += 11;
    EXPECT_EQ(queue_->ExpireLeases().value(), 1);
  }
  EXPECT_EQ(queue_->Find(id)->losses, 5);
  for (int failure = 1; failure <= 3; ++failure)
    ASSERT_TRUE(queue_->End(id, Take()->token, {State::kFailed, true, "", "e"}));
  const Job job = queue_->Find(id).value();
  EXPECT_EQ(job.state, State::kFailed);
  EXPECT_EQ(job.failures, 3);
  EXPECT_EQ(job.attempts, 8);
}

TEST_F(QueueTest, AJobThatCrashesEveryWorkerEndsAndDelaysNoOther) {
  const std::string poison = Submit("poison").id;
  for (int loss = 1; loss <= 10; ++loss) {
    const auto lease = Take();
    ASSERT_TRUE(lease) << loss;
    EXPECT_EQ(lease->job.id, poison);
    EXPECT_EQ(queue_->Reclaim("worker", true).value(), 1);
    Submit("next");
    const auto next = Take();
    EXPECT_EQ(next->job.name, "next") << "a job whose worker vanished waits behind others";
    ASSERT_TRUE(queue_->End(next->job.id, next->token, {}));
  }
  const Job job = queue_->Find(poison).value();
  EXPECT_EQ(job.state, State::kFailed);
  EXPECT_THAT(job.error, testing::HasSubstr("10 workers vanished"));
}

TEST_F(QueueTest, JobsOfAWorkerThatEndedWithItsServerAreFreeAtOnceAndNotBlamed) {
  const std::string id = Submit("one").id;
  for (int restart = 1; restart <= 20; ++restart) {
    ASSERT_TRUE(Take()) << restart;
    EXPECT_EQ(queue_->Reclaim("other", false).value(), 0);
    EXPECT_EQ(queue_->Reclaim("worker", false).value(), 1);
  }
  EXPECT_EQ(queue_->Find(id)->state, State::kQueued);
  EXPECT_EQ(queue_->Find(id)->losses, 0);
}

TEST_F(QueueTest, AFileOfTheVersionBeforeIsUpgraded) {
  const std::string id = Submit("one").id;
  queue_.reset();
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open((folder_.path() / "queue.db").c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle,
                         "ALTER TABLE jobs DROP COLUMN failures; ALTER TABLE jobs DROP COLUMN "
                         "losses; ALTER TABLE jobs DROP COLUMN max_losses; PRAGMA user_version = 1",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(handle);
  Reopen();
  EXPECT_EQ(Take()->job.id, id);
  EXPECT_EQ(queue_->Find(id)->max_losses, 10);
}

TEST_F(QueueTest, AFailureIsRetriedOnlyIfTheWorkerSaysSo) {
  const std::string id = Submit("one").id;
  auto lease = Take();
  ASSERT_TRUE(queue_->End(id, lease->token, {State::kFailed, true, "", "e"}));
  EXPECT_EQ(queue_->Find(id)->state, State::kQueued);
  lease = Take();
  ASSERT_TRUE(queue_->End(id, lease->token, {State::kFailed, false, "", "e"}));
  EXPECT_EQ(queue_->Find(id)->state, State::kFailed);
  EXPECT_EQ(queue_->Find(id)->error, "e");
}

TEST_F(QueueTest, AJobThatIsGivenBackLosesNoAttempt) {
  const std::string id = Submit("one").id;
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(queue_->End(id, Take()->token, {State::kQueued, false, "", ""}));
  EXPECT_EQ(queue_->Find(id)->state, State::kQueued);
  EXPECT_EQ(queue_->Find(id)->attempts, 0);
  const auto lease = Take();
  ASSERT_TRUE(queue_->Cancel(id));
  ASSERT_TRUE(queue_->End(id, lease->token, {State::kQueued, false, "", ""}));
  EXPECT_EQ(queue_->Find(id)->state, State::kCancelled);
}

TEST_F(QueueTest, CancellingAQueuedJobEndsIt) {
  const std::string id = Submit("one").id;
  EXPECT_EQ(queue_->Cancel(id)->state, State::kCancelled);
  EXPECT_EQ(queue_->Cancel(id)->state, State::kCancelled);
  EXPECT_FALSE(Take());
  EXPECT_EQ(queue_->Cancel("j-none").error().code, ErrorCode::kNotFound);
}

TEST_F(QueueTest, TheWorkerOfACancelledJobIsToldAndKeepsTheResult) {
  const std::string id = Submit("one").id;
  const auto lease = Take();
  EXPECT_TRUE(queue_->Cancel(id)->cancel_requested);
  EXPECT_TRUE(queue_->Extend(id, lease->token, 10).value());
  ASSERT_TRUE(queue_->End(id, lease->token, {State::kCancelled, false, "best so far", ""}));
  EXPECT_EQ(queue_->Find(id)->result, "best so far");
}

TEST_F(QueueTest, ACancelledJobOfADeadWorkerIsNotQueuedAgain) {
  const std::string id = Submit("one").id;
  Take();
  ASSERT_TRUE(queue_->Cancel(id));
  now_ += 11;
  EXPECT_EQ(queue_->ExpireLeases().value(), 1);
  EXPECT_EQ(queue_->Find(id)->state, State::kCancelled);
}

TEST_F(QueueTest, ABatchIsRecordedOnce) {
  const std::string id = Submit("one").id;
  const auto lease = Take();
  const Batch batch{1, {{"trial", "a"}, {"trial", "b"}}, "progress"};
  ASSERT_TRUE(queue_->Record(id, lease->token, batch));
  ASSERT_TRUE(queue_->Record(id, lease->token, batch));
  ASSERT_TRUE(queue_->Record(id, lease->token, {2, {{"trial", "c"}}, ""}));
  EXPECT_THAT(EventsOf(id),
              ElementsAre("state queued", "state running", "trial a", "trial b", "trial c"));
  EXPECT_EQ(queue_->Find(id)->progress, "progress");
  const int64_t last = queue_->LastEvent().value();
  EXPECT_THAT(queue_->Events("", last - 1, 10).value(), testing::SizeIs(1));
}

TEST_F(QueueTest, EverythingIsThereAfterReopening) {
  const std::string id = Submit("one", 3, {{"a", "b"}}).id;
  const auto lease = Take({{"a", "b"}});
  Reopen();
  const Job job = queue_->Find(id).value();
  EXPECT_EQ(job.priority, 3);
  EXPECT_EQ(job.labels, (Labels{{"a", "b"}}));
  EXPECT_TRUE(queue_->Extend(id, lease->token, 10));
  EXPECT_EQ(queue_->Counts()->at(State::kRunning), 1);
}

TEST_F(QueueTest, ListsByStateAndPage) {
  for (int i = 0; i < 5; ++i) Submit("job" + std::to_string(i));
  Take();
  const JobPage page = queue_->List({{State::kQueued}, 2, 1}).value();
  EXPECT_EQ(page.total, 4);
  ASSERT_EQ(page.jobs.size(), 2);
  EXPECT_EQ(page.jobs[0].name, "job3");
}

TEST_F(QueueTest, RefusesFilesOfOtherPrograms) {
  ASSERT_TRUE(WriteFileAtomic(folder_.path() / "other", "no database, but more than a header"));
  EXPECT_FALSE(SqliteQueue::Open(folder_.path() / "other"));
  EXPECT_FALSE(SqliteQueue::Open("/dev/null/queue"));
}

TEST(QueueState, NamesAreReadBack) {
  for (const State state :
       {State::kQueued, State::kRunning, State::kSucceeded, State::kFailed, State::kCancelled})
    EXPECT_EQ(ParseState(Name(state)), state);
  EXPECT_FALSE(ParseState("other"));
}

}  // namespace
}  // namespace atunner::queue
