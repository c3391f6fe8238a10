// Tuning in the background: jobs with ids, one at a time, in the order in which they came.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner::mcp {

/// A schedule to tune.
struct TuningOrder {
  std::string problem;  ///< its id
  std::shared_ptr<const ScheduleTemplate> schedule;
  Target target;
  jobs::TuningOptions options;
};

class TuningJobs {
 public:
  /// `services` must outlive the object.
  explicit TuningJobs(jobs::Services& services);
  /// Cancels what runs and waits for its end.
  ~TuningJobs();

  /// Thread-safe, as all that follows. Returns the job's id.
  std::string Start(TuningOrder order);
  /// kNotFound for an unknown id. State, progress, the best so far, and the result at the end.
  Result<Json> Status(const std::string& id) const;
  /// Asks the job to end with the best so far. kNotFound for an unknown id.
  atunner::Status Cancel(const std::string& id);
  /// Waits until the job has ended or `stop` is requested, which cancels it.
  Result<Json> Wait(const std::string& id, const std::stop_token& stop);
  /// Every job, newest first.
  Json List() const;

 private:
  struct Job;
  void Work(const std::stop_token& end);
  void Run(Job& job);
  void Observe(Job& job, const jobs::Event& event);
  std::shared_ptr<Job> Find(const std::string& id) const;

  jobs::Services& services_;
  mutable std::mutex mutex_;  ///< of the jobs and their states
  std::condition_variable_any changed_;
  std::map<int, std::shared_ptr<Job>> jobs_;
  std::deque<std::shared_ptr<Job>> queue_;
  std::jthread worker_;
};

}  // namespace atunner::mcp
