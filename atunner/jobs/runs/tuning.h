// The jobs that tune: an operator or a graph, a described kernel, and a bare .cu file.
#pragma once

#include <stop_token>
#include <variant>
#include <vector>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/jobs/requests/results.h"
#include "atunner/jobs/runs/tuning_sessions.h"
#include "atunner/model/schedule/schedule_template.h"
#include "atunner/search/candidate_source.h"

namespace atunner::jobs {

/// Searches, verifies, compares and reports, at each size that is named. With several sizes `out`
/// is the folder of their artifacts. kInvalidInput for a wrong task, condition or folder,
/// kUnavailable where the target or a compiler is missing.
Result<TuningResult> Optimize(const OptimizeRequest& request, Services& services,
                              const EventSink& events, std::stop_token stop);

/// Tunes the kernels of one template. `sources` are asked for candidates before its own search.
Result<TuningResult> TuneTemplate(const ScheduleTemplate& schedule, const Target& target,
                                  const TuningOptions& options, Services& services,
                                  const EventSink& events, std::stop_token stop,
                                  const std::vector<CandidateSource*>& sources = {});

/// Tunes several tasks that this program wrote itself, one after the other, with one compiler and
/// the same processes of judges: starting CUDA takes a second.
class TaskTuner {
 public:
  /// The arguments must outlive this object, apart from `stop`.
  TaskTuner(const Target& target, const TuningOptions& options, Services& services,
            const EventSink& events, const std::stop_token& stop);
  Status Open() { return sessions_.Open(); }
  /// Tunes one task into the folder `out`, with `budget` in place of the options' own.
  Result<RunResult> Tune(const ScheduleTemplate& schedule, const Path& out, const Budget& budget);

 private:
  const Target& target_;
  const TuningOptions& options_;
  Services& services_;
  const EventSink& events_;
  std::stop_token stop_;
  TuningSessions sessions_;
};

/// kInvalidInput for a file that is neither a kernel .toml nor a T1 .json.
Result<TuningResult> Tune(const TuneRequest& request, Services& services, const EventSink& events,
                          std::stop_token stop);

/// The tuned kernel, or without `auto_tune` what was understood of the file.
Result<std::variant<TuningResult, UnderstoodKernel>> HardwareOptimize(
    const HardwareOptimizeRequest& request, Services& services, const EventSink& events,
    std::stop_token stop);

}  // namespace atunner::jobs
