// Workers and the process that owns the queue are killed at arbitrary moments. No job may be lost,
// and none may be recorded twice.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "atunner/base/random.h"
#include "atunner/queue/sqlite_queue.h"

namespace atunner::queue {
namespace {

constexpr int kJobs = 50;
constexpr double kLeaseSeconds = 0.1;

void Pause(int milliseconds) { ::usleep(static_cast<useconds_t>(milliseconds) * 1000); }

/// Takes jobs for ever, each of which takes a few milliseconds and reports three events.
[[noreturn]] void Work(const Path& file) {
  const auto queue = SqliteQueue::Open(file);
  if (!queue) ::_exit(1);
  for (;;) {
    (void)(*queue)->ExpireLeases();
    const auto lease = (*queue)->Take({std::to_string(::getpid()), {}}, kLeaseSeconds);
    if (!lease || !*lease) {
      Pause(2);
      continue;
    }
    const std::string& id = (*lease)->job.id;
    for (int i = 1; i <= 3; ++i)
      (void)(*queue)->Record(id, (*lease)->token,
                             {i, {{"trial", (*lease)->token + std::to_string(i)}}, "p"});
    Pause(3);
    (void)(*queue)->End(id, (*lease)->token, {State::kSucceeded, false, (*lease)->token, ""});
  }
}

[[noreturn]] void SubmitAll(const Path& file) {
  const auto queue = SqliteQueue::Open(file);
  for (int i = 0; queue && i < kJobs; ++i) {
    Submission one{.key = "key" + std::to_string(i), .name = "", .payload = "{}", .labels = {}};
    one.max_losses = 1000;
    (void)(*queue)->Submit(one);
  }
  ::_exit(0);
}

template <class Main>
pid_t Start(const Main& main, const Path& file) {
  const pid_t child = ::fork();
  if (child == 0) main(file);
  return child;
}

void Kill(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

/// Kills submitters until one of them ends by itself.
void SubmitUnderFire(const Path& file, Random& random) {
  for (int patience = 2;; patience += 2) {
    const pid_t child = Start(SubmitAll, file);
    Pause(static_cast<int>(random.Below(static_cast<uint64_t>(patience))) + patience);
    if (::waitpid(child, nullptr, WNOHANG) == child) return;
    Kill(child);
  }
}

int64_t EndedIn(const Path& file) {
  return SqliteQueue::Open(file).value()->Counts().value()[State::kSucceeded];
}

TEST(QueueProcess, KilledProcessesLoseNothingAndRecordNothingTwice) {
  TemporaryDirectory folder;
  const Path file = folder.path() / "queue.db";
  ASSERT_TRUE(SqliteQueue::Open(file));
  Random random(7);
  SubmitUnderFire(file, random);
  std::vector<pid_t> workers = {Start(Work, file), Start(Work, file)};
  int kills = 0;
  while (EndedIn(file) < kJobs) {
    Pause(5 + static_cast<int>(random.Below(30)));
    pid_t& victim = workers[random.Below(workers.size())];
    Kill(victim);
    ++kills;
    victim = Start(Work, file);
  }
  for (const pid_t worker : workers) Kill(worker);
  EXPECT_GT(kills, 0);

  const auto queue = SqliteQueue::Open(file).value();
  const JobPage page = queue->List({{}, 1000, 0}).value();
  EXPECT_EQ(page.total, kJobs);
  for (const Job& job : page.jobs) {
    EXPECT_EQ(job.state, State::kSucceeded);
    std::map<std::string, int> seen;
    int of_winner = 0;
    const std::vector<Event> events = queue->Events(job.id, 0, 100000).value();
    for (const Event& event : events) {
      if (event.type == "state") continue;
      EXPECT_EQ(++seen[event.type + event.data], 1) << event.type << event.data;
      of_winner += event.type == "trial" && event.data.starts_with(job.result) ? 1 : 0;
    }
    EXPECT_EQ(seen["endsucceeded"], 1);
    EXPECT_EQ(of_winner, 3);
  }
}

}  // namespace
}  // namespace atunner::queue
