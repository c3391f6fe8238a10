// What is known of a job while it runs: the best so far, and the budget used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "atunner/jobs/requests/events.h"
#include "atunner/model/json/json.h"

namespace atunner::platform {

class JobProgress {
 public:
  void Add(const jobs::Event& event);
  /// The fields `device`, `evidence`, `best`, `baseline`, `speedup`, `runs`, `used_trials` and
  /// `used_seconds` of a job.
  Json ToJson() const;
  /// The event as subscribers get it: small, with the key "event".
  Json Shown(const jobs::Event& event) const;

 private:
  void AddTrial(const jobs::TrialEvent& event);
  void AddFinished(const jobs::RunFinishedEvent& event);

  struct Best {
    int64_t trial = 0;
    std::string configuration;
    double ns = 0;
  };
  std::string device_;
  std::string evidence_;
  std::vector<std::string> runs_;
  std::optional<Best> best_;  ///< of the run that is last in `runs_`
  std::string baseline_;
  std::optional<double> baseline_ns_;
  int64_t earlier_trials_ = 0;  ///< of the runs before
  double earlier_seconds_ = 0;
  int64_t trials_ = 0;
  double seconds_ = 0;
};

/// The name of an event's kind, as its JSON has it under "event".
std::string KindOf(const Json& event);

}  // namespace atunner::platform
