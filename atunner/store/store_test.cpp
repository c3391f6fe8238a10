#include "atunner/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "atunner/base/random.h"

namespace atunner {
namespace {

using testing::HasSubstr;

ParameterSpace Space() {
  ParameterSpace space;
  space.parameters = {{"n", {int64_t{1}}, ""}};
  return space;
}

Trial MakeTrial(int64_t n) {
  Trial trial;
  trial.number = n;
  trial.candidate = MakeCandidate(Space(), {{n}}, {"search:random", ""});
  trial.estimate = Estimate{.time_ns = static_cast<double>(100 + n)};
  return trial;
}

RunRecord MakeRun(const std::string& id) {
  return {id,   "key-" + id, "cmd", "2026-01-01T00:00:00Z", "running", "predicted", "A100", "{}",
          "{}", "{}",        0};
}

TEST(Store, KeepsRunsAndTrials) {
  TemporaryDirectory dir;
  bool resumed = true;
  {
    auto store = Store::Open(dir.path() / "s.db").value();
    EXPECT_EQ(store->OpenRun(MakeRun("a"), resumed)->id, "a");
    EXPECT_FALSE(resumed);
    ASSERT_TRUE(store->AppendTrial("a", MakeTrial(1)));
    ASSERT_TRUE(store->AppendTrial("a", MakeTrial(1)));
    ASSERT_TRUE(store->AppendTrial("a", MakeTrial(2)));
  }
  auto store = Store::Open(dir.path() / "s.db").value();
  RunRecord other = MakeRun("b");
  other.key = "key-a";
  EXPECT_EQ(store->OpenRun(other, resumed)->id, "a") << "the same key resumes the same run";
  EXPECT_TRUE(resumed);
  EXPECT_EQ(store->Trials("a")->size(), 2u);
  EXPECT_EQ(store->FindRun("last")->id, "a");
  EXPECT_THAT(store->FindRun("zzz").error().ToString(), HasSubstr("zzz"));
}

TEST(Store, RunsOfOtherKeysGetOtherIds) {
  const TemporaryDirectory dir;
  auto store = Store::Open(dir.path() / "s.db").value();
  RunRecord run = MakeRun("a");
  bool resumed = true;
  for (const char* const id : {"a", "a-2", "a-3"}) {
    run.key = "key of " + std::string(id);
    EXPECT_EQ(store->OpenRun(run, resumed)->id, id);
    EXPECT_FALSE(resumed);
  }
  run.key = "key of a-2";
  EXPECT_EQ(store->OpenRun(run, resumed)->id, "a-2");
  EXPECT_TRUE(resumed);
}

TEST(Store, ARunWhoseProcessDiedIsNotRunning) {
  const TemporaryDirectory dir;
  const Path file = dir.path() / "s.db";
  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto store = Store::Open(file).value();
    bool resumed = false;
    const bool opened = store->OpenRun(MakeRun("a"), resumed).has_value();
    (void)!::write(pipes[1], &opened, 1);
    ::pause();
  }
  char opened = 0;
  ASSERT_EQ(::read(pipes[0], &opened, 1), 1);
  auto store = Store::Open(file).value();
  EXPECT_EQ(store->FindRun("a")->status, "running");
  EXPECT_EQ(store->Runs(5)->at(0).status, "running");
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(store->FindRun("a")->status, "interrupted");
  bool resumed = false;
  RunRecord again = store->OpenRun(MakeRun("a"), resumed).value();
  EXPECT_TRUE(resumed);
  EXPECT_EQ(store->FindRun("a")->status, "running") << "resumed";
  again.status = "finished";
  ASSERT_TRUE(store->UpdateRun(again));
  EXPECT_EQ(store->FindRun("a")->status, "finished");
  EXPECT_FALSE(std::filesystem::exists(file.string() + ".running")) << "nothing is left";
}

TEST(Store, BadFilesGetOneMessage) {
  TemporaryDirectory dir;
  ASSERT_TRUE(WriteFileAtomic(dir.path() / "text.db", std::string(5000, 'x')));
  EXPECT_THAT(Store::Open(dir.path() / "text.db").error().ToString(), HasSubstr("request.store"));
  EXPECT_FALSE(Store::Open("/proc/atunner/s.db").has_value());
  EXPECT_FALSE(Store::Open(dir.path()).has_value());
}

// A process that dies without closing its store leaves its log.
TEST(Store, ALogWithoutItsStoreIsNamed) {
  TemporaryDirectory dir;
  const Path file = dir.path() / "s.db", log = dir.path() / "s.db-wal";
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto store = Store::Open(file);
    ::_exit(store ? 0 : 1);
  }
  ::waitpid(pid, nullptr, 0);
  ASSERT_TRUE(std::filesystem::exists(log));
  std::filesystem::remove(file);
  const auto opened = Store::Open(file);
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened.error().ToString(), HasSubstr("s.db-wal"));
  std::filesystem::remove(log);
  EXPECT_TRUE(Store::Open(file).has_value());
}

TEST(Store, TwoProcessesShare) {
  TemporaryDirectory dir;
  const Path file = dir.path() / "s.db";
  bool resumed = false;
  (void)Store::Open(file).value()->OpenRun(MakeRun("a"), resumed);
  std::vector<pid_t> children;
  for (int c = 0; c < 2; ++c) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto store = Store::Open(file);
      bool ok = store.has_value();
      for (int64_t i = 0; ok && i < 30; ++i)
        ok = (*store)->AppendTrial("a", MakeTrial(i * 2 + c)).has_value();
      ::_exit(ok ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Store::Open(file).value()->Trials("a")->size(), 60u);
}

// Two processes number their trials independently, so two trials may have the same number. An
// update of one must not overwrite the other.
TEST(Store, AnUpdateIsOfOneConfiguration) {
  const TemporaryDirectory dir;
  const auto store = Store::Open(dir.path() / "s.db").value();
  bool resumed = false;
  (void)store->OpenRun(MakeRun("a"), resumed);
  Trial mine = MakeTrial(1), others = MakeTrial(2);
  others.number = 1;
  ASSERT_TRUE(store->AppendTrial("a", mine));
  ASSERT_TRUE(store->AppendTrial("a", others));
  mine.estimate->time_ns = 7;
  ASSERT_TRUE(store->UpdateTrial("a", mine));
  const std::vector<Trial> trials = store->Trials("a").value();
  ASSERT_EQ(trials.size(), 2u);
  for (const Trial& trial : trials)
    EXPECT_EQ(trial.ObjectiveNs(),
              trial.configuration().values == mine.configuration().values ? 7 : 102);
}

TEST(Store, KilledAtFiftyMomentsItLosesNothingAcknowledged) {
  TemporaryDirectory dir;
  const Path file = dir.path() / "s.db";
  bool resumed = false;
  (void)Store::Open(file).value()->OpenRun(MakeRun("a"), resumed);
  Random random(17);
  std::set<int64_t> acknowledged;
  int64_t next = 0;
  for (int kill = 0; kill < 50; ++kill) {
    int pipes[2];
    ASSERT_EQ(::pipe(pipes), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto store = Store::Open(file);
      for (int64_t i = next; store && i < next + 1000; ++i) {
        if (!(*store)->AppendTrial("a", MakeTrial(i))) ::_exit(1);
        if (::write(pipes[1], &i, sizeof i) != sizeof i) ::_exit(1);
      }
      ::_exit(0);
    }
    ::close(pipes[1]);
    ::usleep(static_cast<useconds_t>(1000 + random.Below(15000)));
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    int64_t number = 0;
    while (::read(pipes[0], &number, sizeof number) == sizeof number) acknowledged.insert(number);
    ::close(pipes[0]);
    next = acknowledged.empty() ? 0 : *acknowledged.rbegin() + 1;
  }
  const auto trials = Store::Open(file).value()->Trials("a").value();
  std::multiset<int64_t> stored;
  for (const Trial& trial : trials) stored.insert(trial.number);
  for (int64_t number : acknowledged) EXPECT_EQ(stored.count(number), 1u) << number;
  EXPECT_GT(acknowledged.size(), 20u);
}

}  // namespace
}  // namespace atunner
