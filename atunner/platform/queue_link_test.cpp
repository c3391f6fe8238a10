// Announcer and worker's link with a real nats-server, where one is installed. The server's routes
// are played by its queue.
#include "atunner/platform/queue_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "atunner/base/random.h"
#include "atunner/nats/jetstream.h"
#include "atunner/nats/local_server_test.h"
#include "atunner/platform/job_announcer.h"
#include "atunner/platform/job_messages.h"
#include "atunner/queue/sqlite_queue.h"

namespace atunner::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kLeaseSeconds = 1;

void Pause(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// What the routes of a server do with its queue.
class DirectLink : public ServerLink {
 public:
  explicit DirectLink(queue::Queue& queue) : queue_(queue) {}
  Result<std::optional<LeasedJob>> Lease(const WorkerDescription& worker,
                                         const Wanted& wanted) override {
    const queue::Worker one{worker.name, LabelsOf(worker)};
    ATUNNER_TRY(const auto lease, wanted.job.empty()
                                      ? queue_.Take(one, kLeaseSeconds)
                                      : queue_.TakeJob(one, wanted.job, kLeaseSeconds));
    if (!lease) return std::nullopt;
    return LeasedJob{lease->job.id, lease->token, {}};
  }
  Result<bool> HeartBeat(const LeasedJob& job) override {
    return queue_.Extend(job.id, job.lease, kLeaseSeconds);
  }
  Status SendEvents(const LeasedJob& job, int64_t batch, const Json&, const Json&) override {
    return queue_.Record(job.id, job.lease, {batch, {{"trial", job.lease}}, "p"});
  }
  Result<Path> Fetch(const std::string&, const Path&) override { return Path(); }
  Status PutArtifact(const LeasedJob&, const std::string&, const Path&) override { return {}; }
  Result<std::string> SendRun(const LeasedJob&, const RunRecord& run,
                              const std::vector<Trial>&) override {
    return run.id;
  }
  Status End(const LeasedJob& job, const std::string& state, const Json&, const Json&,
             bool) override {
    return queue_.End(job.id, job.lease, {queue::ParseState(state).value(), false, job.lease, ""});
  }

 private:
  queue::Queue& queue_;
};

class QueueLinkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!nats::LocalServer::Program()) GTEST_SKIP() << "nats-server is not installed";
    server_.emplace();
    queue_ = queue::SqliteQueue::Open(folder_.path() / "queue.db").value();
    client_ = MakeClient();
    announcer_.emplace(*queue_, *client_, SystemClock(),
                       AnnouncerOptions{"http://tuner:8080", kLeaseSeconds});
  }

  std::unique_ptr<nats::Client> MakeClient() const {
    auto url = nats::ParseUrl("nats://" + server_->Address() + "/test").value();
    return std::make_unique<nats::Client>(std::move(url), nats::ClientOptions{"test", "", 2});
  }
  std::unique_ptr<ServerLink> LinkBy(nats::Client& client) {
    return MakeQueueLink(client, SystemClock(), {},
                         [this](const std::string& address) -> Result<std::unique_ptr<ServerLink>> {
                           EXPECT_EQ(address, "http://tuner:8080");
                           return std::make_unique<DirectLink>(*queue_);
                         })
        .value();
  }
  std::string Submit(const std::string& name, int priority = 0, queue::Labels labels = {}) {
    queue::Submission one{.key = name, .name = name, .payload = "{}", .priority = priority};
    one.labels = std::move(labels);
    one.max_losses = 1000;
    return queue_->Submit(one).value().job.id;
  }
  /// Looks until there are so many messages, at most for ten seconds.
  bool LookUntil(size_t messages) {
    for (int i = 0; i < 200; ++i, Pause(50)) {
      if (announcer_->Look() && Present().size() == messages) return true;
    }
    return false;
  }
  std::vector<std::string> Present() {
    return nats::JetStream(*client_).Subjects("test").value_or(std::vector<std::string>());
  }
  /// The job that a worker gets within two seconds; "" for none.
  std::optional<LeasedJob> Lease(ServerLink& link, const WorkerDescription& worker,
                                 int tries = 40) {
    for (int i = 0; i < tries; ++i, Pause(50)) {
      if (auto job = link.Lease(worker, {}); job && *job) return **job;
    }
    return std::nullopt;
  }

  TemporaryDirectory folder_;
  std::optional<nats::LocalServer> server_;
  std::unique_ptr<queue::SqliteQueue> queue_;
  std::unique_ptr<nats::Client> client_;
  std::optional<JobAnnouncer> announcer_;
};

TEST_F(QueueLinkTest, JobsGoToWorkersWithTheirLabelsHighPrioritiesFirst) {
  const std::string low = Submit("low", -1);
  const std::string labelled = Submit("labelled", 0, {{"gpu", "H200"}});
  const std::string high = Submit("high", 7);
  ASSERT_TRUE(LookUntil(3));
  const auto client = MakeClient();
  const auto link = LinkBy(*client);
  const WorkerDescription plain{"plain", {}, {}};
  const auto first = Lease(*link, plain);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->id, high);
  EXPECT_FALSE(link->HeartBeat(*first).value());
  ASSERT_TRUE(link->End(*first, "succeeded", {}, {}, false));
  const auto second = Lease(*link, plain);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->id, low);
  ASSERT_TRUE(link->End(*second, "succeeded", {}, {}, false));
  EXPECT_FALSE(Lease(*link, plain, 4));
  const auto third = Lease(*link, {"gpu", {"H200"}, {}});
  ASSERT_TRUE(third);
  EXPECT_EQ(third->id, labelled);
  ASSERT_TRUE(link->End(*third, "succeeded", {}, {}, false));
  EXPECT_THAT(Present(), testing::IsEmpty());
}

TEST_F(QueueLinkTest, MessagesOfJobsThatWaitNoLongerGo) {
  const std::string job = Submit("job");
  ASSERT_TRUE(LookUntil(1));
  ASSERT_TRUE(queue_->Cancel(job));
  ASSERT_TRUE(LookUntil(0));
  // A worker that got the message before, or finds one of a job that another took, goes on.
  const std::string taken = Submit("taken");
  const std::string next = Submit("next");
  ASSERT_TRUE(LookUntil(2));
  ASSERT_TRUE(queue_->TakeJob({"other", {}}, taken, 100).value());
  const auto client = MakeClient();
  const auto link = LinkBy(*client);
  const auto got = Lease(*link, {"w", {}, {}});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->id, next);
}

TEST_F(QueueLinkTest, AJobOfAWorkerThatVanishedIsAnnouncedAgain) {
  const std::string job = Submit("job");
  ASSERT_TRUE(LookUntil(1));
  {
    const auto client = MakeClient();
    ASSERT_TRUE(Lease(*LinkBy(*client), {"vanishes", {}, {}}));
  }
  Pause(static_cast<int>(kLeaseSeconds * 1100));
  ASSERT_EQ(queue_->ExpireLeases().value(), 1);
  const std::string subject = SubjectOf("test", queue_->Find(job).value());
  for (int i = 0; i < 100 && Present() != std::vector{subject}; ++i, Pause(50))
    ASSERT_TRUE(announcer_->Look());
  EXPECT_THAT(Present(), ElementsAre(subject));
  const auto client = MakeClient();
  const auto again = Lease(*LinkBy(*client), {"w", {}, {}}, 100);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, job);
}

TEST_F(QueueLinkTest, AServerThatForgotEverythingIsFilledAgain) {
  const std::string job = Submit("job");
  ASSERT_TRUE(LookUntil(1));
  server_->Kill();
  server_->Forget();
  server_->Start();
  Submit("another");
  ASSERT_TRUE(LookUntil(2));
  const auto client = MakeClient();
  const auto got = Lease(*LinkBy(*client), {"w", {}, {}});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->id, job);
}

TEST_F(QueueLinkTest, AMessageThatIsStoredButNotDeliveredIsReplaced) {
  const std::string job = Submit("job");
  ASSERT_TRUE(LookUntil(1));
  // What a nats-server leaves that was killed between an acknowledgement and its note of it.
  nats::JetStream jetstream(*client_);
  const auto message = jetstream.Pull("test", "normal-any").value();
  ASSERT_TRUE(message);
  ASSERT_TRUE(jetstream.Acknowledge(*message));
  ASSERT_TRUE(jetstream.PublishOnce(message->subject, message->payload));
  const auto undelivered = jetstream.Pull("test", "normal-any").value();
  ASSERT_TRUE(undelivered);
  ASSERT_TRUE(client_->Publish(undelivered->reply, "+TERM"));
  Submit("another", -1);
  ASSERT_TRUE(LookUntil(2));
  const auto client = MakeClient();
  const auto got = Lease(*LinkBy(*client), {"w", {}, {}});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->id, job);
}

TEST_F(QueueLinkTest, AJobWhoseMessageNoWorkerCanUseFails) {
  const std::string job = Submit("job");
  ASSERT_TRUE(LookUntil(1));
  nats::JetStream jetstream(*client_);
  for (int delivered = 0, i = 0; delivered < 20 && i < 1000; ++i) {
    const auto message = jetstream.Pull("test", "normal-any").value();
    if (message) ASSERT_TRUE(jetstream.GiveBack(*message, 0));
    delivered += message ? 1 : 0;
    Pause(2);
  }
  for (int i = 0; i < 100; ++i, Pause(20)) {
    (void)jetstream.Pull("test", "normal-any");
    ASSERT_TRUE(announcer_->Look());
    if (queue_->Find(job)->state == queue::State::kFailed) break;
  }
  const queue::Job failed = queue_->Find(job).value();
  EXPECT_EQ(failed.state, queue::State::kFailed);
  EXPECT_THAT(failed.error, HasSubstr("did not take it from http://tuner:8080"));
}

TEST_F(QueueLinkTest, KnownServersAreAskedWhileTheQueueIsAway) {
  server_->Kill();
  const std::string job = Submit("job");
  const auto client = MakeClient();
  const auto link = MakeQueueLink(
                        *client, SystemClock(), {.server = "http://tuner:8080"},
                        [this](const std::string&) -> Result<std::unique_ptr<ServerLink>> {
                          return std::make_unique<DirectLink>(*queue_);
                        })
                        .value();
  const auto got = link->Lease({"w", {}, {}}, {});
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->id, job);
  ASSERT_TRUE(link->End(**got, "succeeded", {}, {}, false));
}

TEST_F(QueueLinkTest, KillsLoseNothingAndRecordNothingTwice) {
  constexpr int kJobs = 60;
  std::vector<std::string> jobs;
  for (int i = 0; i < kJobs; ++i) jobs.push_back(Submit("job" + std::to_string(i), i % 3 - 1));
  std::atomic<bool> done = false;
  std::thread server([&] {
    while (!done) {
      (void)announcer_->Look();
      (void)queue_->ExpireLeases();
      Pause(20);
    }
  });
  std::vector<std::thread> workers;
  std::atomic<int> vanished = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    workers.emplace_back([&, seed] {
      Random random(seed);
      while (!done) {  // one life of a worker
        const auto client = MakeClient();
        const auto link = LinkBy(*client);
        while (!done) {
          const auto job = link->Lease({"w" + std::to_string(seed), {}, {}}, {});
          if (!job || !*job) {
            Pause(10);
            continue;
          }
          (void)link->HeartBeat(**job);
          (void)link->SendEvents(**job, 1, {}, {});
          Pause(static_cast<int>(random.Below(30)));
          if (random.Below(10) == 0) break;  // it is killed
          (void)link->End(**job, "succeeded", {}, {}, false);
        }
        ++vanished;
      }
    });
  }
  Random random(9);
  int kills = 0;
  for (; kills < 300 && queue_->Counts().value()[queue::State::kSucceeded] < kJobs; ++kills) {
    Pause(200 + static_cast<int>(random.Below(400)));
    server_->Kill();
    server_->Start();
  }
  done = true;
  for (std::thread& one : workers) one.join();
  server.join();
  EXPECT_GT(kills, 0);
  for (const std::string& id : jobs) {
    const queue::Job job = queue_->Find(id).value();
    EXPECT_EQ(job.state, queue::State::kSucceeded) << id;
    int ends = 0;
    int winners = 0;
    const auto events = queue_->Events(id, 0, 10000).value();
    for (const queue::Event& event : events) {
      ends += event.type == "end" ? 1 : 0;
      winners += event.type == "trial" && event.data == job.result ? 1 : 0;
    }
    EXPECT_EQ(ends, 1);
    EXPECT_EQ(winners, 1);
  }
  std::printf("%d kills of nats-server, %d lives of workers\n", kills, vanished.load());
}

}  // namespace
}  // namespace atunner::platform
