// Tuning in rounds: a caller proposes the candidates of a round, sees their results, and proposes
// more. The run is stored, judged and reported as that of any other tuning job.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/jobs/requests/results.h"
#include "atunner/jobs/runs/tuning_sessions.h"
#include "atunner/model/schedule/schedule_template.h"
#include "atunner/tune/restricted_schedule.h"
#include "atunner/tune/round_session.h"

namespace atunner::jobs {

/// A kernel in a user's file.
struct SourceTask {
  Path file;           ///< .cu, .toml or T1 .json; empty: the task is an operator or a graph
  std::string kernel;  ///< which kernel of a .cu; empty: the only one
};

class RoundTuning {
 public:
  /// Finds the task's template, the target and the run. Nothing is judged yet. Errors as Optimize;
  /// several sizes are kUnsupported. The arguments must outlive the object.
  static Result<std::unique_ptr<RoundTuning>> Open(const OptimizeRequest& request,
                                                   Services& services, const EventSink& events,
                                                   std::stop_token stop);

  /// The same for a user's kernel, which is its own oracle.
  static Result<std::unique_ptr<RoundTuning>> Open(const SourceTask& source,
                                                   const TuningOptions& options, Services& services,
                                                   const EventSink& events, std::stop_token stop);

  const ScheduleTemplate& schedule() const { return *restricted_; }
  const Target& target() const { return target_; }
  const std::string& run() const { return run_.id; }
  double floor_ns() const;

  /// Judges candidates; those that the run has already keep their results. The first call also
  /// judges the plain kernel.
  Status Try(std::vector<Candidate> candidates);
  /// All trials of the run so far; none before the first Try().
  const std::vector<Trial>& trials() const;
  const std::vector<Baseline>& baselines() const;
  /// Why the last Try() ended.
  const std::string& stop_reason() const;
  bool stopped() const { return stop_.stop_requested(); }

  /// Verifies the best again, compares it, and writes artifact and report. `reason`: why no other
  /// round follows.
  Result<RunResult> Finish(const std::string& reason);

 private:
  RoundTuning(const TuningOptions& options, Services& services, const EventSink& events,
              Target target, std::stop_token stop);
  Status Prepare();
  Status Begin();

  const TuningOptions& options_;
  Services& services_;
  const EventSink& events_;
  Target target_;
  std::stop_token stop_;
  std::unique_ptr<ScheduleTemplate> whole_;
  std::optional<RestrictedSchedule> restricted_;
  TuningSessions sessions_;
  RunRecord run_;
  Path folder_;
  std::unique_ptr<RoundSession> session_;
};

}  // namespace atunner::jobs
