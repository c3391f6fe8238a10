// The kernels of a plan's parts: each is tuned as an operator is, into an artifact of its own.
#pragma once

#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/jobs/requests/results.h"
#include "atunner/jobs/runs/tuning.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner::jobs {

/// A distinct kernel of a model.
struct PlanPart {
  const ScheduleTemplate* schedule = nullptr;
  std::string folder;  ///< from the plan's own
};

class PartTuning {
 public:
  /// The arguments must outlive this object.
  PartTuning(const Target& target, const TuningOptions& options, Services& services,
             const EventSink& events, const std::stop_token& stop);
  /// One result for each part, in order, with its artifact in `plan`/folder. Parts share the
  /// budget. First guesses are compiled all at once, and several parts are judged at the same time,
  /// since none is measured. kUnsupported if no correct kernel was found for a part.
  Result<std::vector<RunResult>> Run(const std::vector<PlanPart>& parts, const Path& plan);
  /// What the user should know of the last Run.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  /// What the threads of a Run share.
  struct Work;

  void TuneNext(Work& work);
  Result<RunResult> TunePart(TaskTuner& tuner, const PlanPart& part, const Path& plan,
                             const Budget& budget);
  Result<RunResult> TunePlain(TaskTuner& tuner, const PlanPart& part, const Path& out,
                              const RunResult& failed);

  const Target& target_;
  TuningOptions options_;
  Services& services_;
  std::stop_token stop_;
  std::mutex mutex_;  ///< of events and notes
  EventSink events_;
  std::vector<std::string> notes_;
};

}  // namespace atunner::jobs
