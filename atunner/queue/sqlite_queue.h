// The queue in one SQLite file. A call that returned is durable.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/queue/queue.h"

struct sqlite3;

namespace atunner {
class Statement;
}

namespace atunner::queue {

/// Seconds since 1970. Leases outlive a restart, so that a monotonic clock does not do.
using WallClock = std::function<double()>;
double SecondsSince1970();

class SqliteQueue : public Queue {
 public:
  /// Opens or makes the file. kInvalidInput for a file that cannot be written or is no queue.
  static Result<std::unique_ptr<SqliteQueue>> Open(const Path& file,
                                                   WallClock now = SecondsSince1970);
  ~SqliteQueue() override;

  Result<Submitted> Submit(const Submission& submission) override;
  Result<std::optional<Lease>> Take(const Worker& worker, double seconds) override;
  Result<std::optional<Lease>> TakeJob(const Worker& worker, const std::string& job,
                                       double seconds) override;
  Result<bool> Extend(const std::string& job, const std::string& token, double seconds) override;
  Status Record(const std::string& job, const std::string& token, const Batch& batch) override;
  Status End(const std::string& job, const std::string& token, const Ending& ending) override;
  Result<Job> Cancel(const std::string& job) override;
  Result<bool> Abandon(const std::string& job, int64_t version, const std::string& error) override;
  Result<Job> Find(const std::string& job) override;
  Result<JobPage> List(const JobFilter& filter) override;
  Result<std::vector<Event>> Events(const std::string& job, int64_t after, int limit) override;
  Result<int64_t> LastEvent() override;
  Result<std::map<State, int64_t>> Counts() override;
  Result<int> ExpireLeases() override;
  Result<int> Reclaim(const std::string& worker, bool blame) override;

 private:
  SqliteQueue(sqlite3* handle, Path file, WallClock now)
      : handle_(handle), file_(std::move(file)), now_(std::move(now)) {}

  /// Runs `work` within one transaction, which is rolled back if it fails.
  template <class Work>
  auto Atomically(const Work& work) -> decltype(work());
  std::unexpected<Error> Failure(std::string_view action) const;
  Status Run(Statement& statement, std::string_view action);
  Result<Submitted> Insert(const Submission& submission);
  Result<std::optional<Job>> FirstFor(const Worker& worker);
  Result<Lease> LeaseTo(const Worker& worker, Job job, double seconds);
  Result<Job> FindUnlocked(const std::string& job);
  Result<std::optional<Job>> FindBy(const char* column, const std::string& value);
  /// The job of a valid lease.
  Result<Job> Leased(const std::string& job, const std::string& token);
  Status AddEvent(const std::string& job, const std::string& type, const std::string& data);
  /// Changes the state, with its events.
  Status Enter(const Job& job, State state, const std::string& result, const std::string& error);
  /// Takes away the running jobs that `where` selects, with its first parameter as text.
  Result<int> TakeAway(const char* where, const std::string& parameter, bool blame);
  Status AddTo(const char* column, const Job& job);
  Status Lose(Job job, bool blame);
  Status TakeBack(const Job& job);

  sqlite3* handle_;
  Path file_;
  WallClock now_;
  std::mutex mutex_;
};

}  // namespace atunner::queue
