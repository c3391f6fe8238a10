// A queue of jobs for workers in other processes and on other machines. A job is submitted once,
// leased to one worker at a time and ends once, whatever process is killed at whatever moment.
//
// A worker that takes a job gets a lease with a secret name and must extend it in time. When it
// does not, the job goes back into the queue, and everything that the late worker still says under
// the old lease is refused. What a job is about is an opaque text here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"

namespace atunner::queue {

enum class State : uint8_t { kQueued, kRunning, kSucceeded, kFailed, kCancelled };
std::string_view Name(State state);  // "queued", "running", …
std::optional<State> ParseState(std::string_view name);
/// True for a state that is never left.
bool IsFinal(State state);

using Labels = std::map<std::string, std::string>;

struct Submission {
  /// Equal keys with equal payloads are the same job; "" is no key.
  std::string key;
  std::string name;
  std::string payload;
  int priority = 0;      ///< larger ones first; equal ones in the order of submission
  Labels labels;         ///< a worker must have all of them
  int max_attempts = 3;  ///< it fails for good when so many attempts failed by themselves
  int max_losses = 10;   ///< … or when so many workers vanished with it
};

struct Job {
  std::string id;  ///< "j-20261127-225512-3f2a9c01"
  std::string name;
  std::string payload;
  int priority = 0;
  Labels labels;
  State state = State::kQueued;
  bool cancel_requested = false;
  std::string created;  ///< UTC
  std::string started;  ///< of the last attempt; "" before it
  std::string ended;    ///< "" before
  int attempts = 0;     ///< how often a worker took it and did not give it back
  int failures = 0;     ///< attempts that failed by themselves
  int max_attempts = 0;
  int losses = 0;  ///< attempts whose worker vanished: killed, or cut off
  int max_losses = 0;
  std::string worker;    ///< of the last attempt
  std::string progress;  ///< the worker's last word before the end
  std::string result;    ///< of a job that ended
  std::string error;     ///< of a job that failed
  int64_t version = 0;   ///< grows with every change
};

struct Worker {
  std::string name;
  Labels labels;
};

/// The right to work on a job.
struct Lease {
  Job job;
  std::string token;
};

/// Something that happened to a job. Ids ascend over all jobs. The queue itself adds "state" with
/// every change of state and "end" as the last event; their data is the name of the state.
struct Event {
  int64_t id = 0;
  std::string job;
  std::string type;
  std::string data;
};

/// What a worker says about its job. Batches of a lease are numbered 1, 2, …; one that was recorded
/// already is ignored, so that a worker may send it again when an answer was lost.
struct Batch {
  int64_t number = 0;
  std::vector<std::pair<std::string, std::string>> events;  ///< type and data
  std::string progress;                                     ///< "" leaves the last one
};

/// How a worker ends its job.
struct Ending {
  /// kSucceeded, kFailed or kCancelled; kQueued gives the job back without counting the attempt.
  State state = State::kSucceeded;
  bool retry = false;  ///< of a failure: queue it again while attempts are left
  std::string result;
  std::string error;
};

struct Submitted {
  Job job;
  bool repeated = false;  ///< there was a job with this key already
};

struct JobFilter {
  std::vector<State> states;  ///< empty: all
  int limit = 100;
  int offset = 0;
};

struct JobPage {
  std::vector<Job> jobs;  ///< newest first
  int64_t total = 0;      ///< of all pages
};

/// Where errors about a lease that is no longer valid point to.
inline constexpr std::string_view kLeaseField = "lease";
/// Where the error about a key with another payload points to.
inline constexpr std::string_view kKeyField = "Idempotency-Key";

/// Safe to use from several threads.
class Queue {
 public:
  virtual ~Queue() = default;
  /// kInvalidInput at kKeyField for a known key with another payload.
  virtual Result<Submitted> Submit(const Submission& submission) = 0;
  /// The first job that this worker can take; nullopt if there is none. Among equal priorities
  /// those go first with which fewer workers vanished.
  virtual Result<std::optional<Lease>> Take(const Worker& worker, double seconds) = 0;
  /// Takes this job if it is queued and the worker has its labels; else nullopt.
  virtual Result<std::optional<Lease>> TakeJob(const Worker& worker, const std::string& job,
                                               double seconds) = 0;
  /// Returns true if the job is to be cancelled. kInvalidInput at kLeaseField for a lost lease.
  virtual Result<bool> Extend(const std::string& job, const std::string& token, double seconds) = 0;
  /// kInvalidInput at kLeaseField for a lost lease.
  virtual Status Record(const std::string& job, const std::string& token, const Batch& batch) = 0;
  /// Ends the job. kInvalidInput at kLeaseField for a lost lease. The same call again by the same
  /// lease does nothing.
  virtual Status End(const std::string& job, const std::string& token, const Ending& ending) = 0;
  /// A queued job is cancelled at once; the worker of a running one is told so.
  virtual Result<Job> Cancel(const std::string& job) = 0;
  /// Fails a queued job that no worker can take. False if it is not queued, or changed since
  /// `version`.
  virtual Result<bool> Abandon(const std::string& job, int64_t version,
                               const std::string& error) = 0;
  /// kNotFound for an unknown id.
  virtual Result<Job> Find(const std::string& job) = 0;
  virtual Result<JobPage> List(const JobFilter& filter) = 0;
  /// Events after `after`, of one job or of all ("").
  virtual Result<std::vector<Event>> Events(const std::string& job, int64_t after, int limit) = 0;
  /// The id of the last event of all; 0 before the first.
  virtual Result<int64_t> LastEvent() = 0;
  virtual Result<std::map<State, int64_t>> Counts() = 0;
  /// Takes jobs away from workers that did not extend their leases. Returns how many.
  virtual Result<int> ExpireLeases() = 0;
  /// Takes its jobs away from a worker that has certainly ended. `blame`: they may be the cause, so
  /// that it counts as a loss. Returns how many.
  virtual Result<int> Reclaim(const std::string& worker, bool blame) = 0;
};

}  // namespace atunner::queue
