// How the verbs that tune print their results.
#pragma once

#include <functional>
#include <stop_token>

#include "atunner/jobs/captures/optimize_capture.h"
#include "atunner/jobs/plans/optimize_model.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/results.h"
#include "atunner/jobs/requests/services.h"
#include "faces/cli/verbs/verb_list.h"

namespace atunner::cli {

/// A job that tunes: it gets the machine's services, an event sink and a stop token.
using TuningJob = std::function<Result<jobs::TuningResult>(
    jobs::Services& services, const jobs::EventSink& events, std::stop_token stop)>;

/// Prints progress, stages and finished runs as they come. `common` must outlive it.
jobs::EventSink TuningPrinter(const Common& common);

/// Runs the job and prints progress, stages and results. The exit code is 0 if there is a correct
/// kernel for every size, else 1.
Result<int> RunTuning(const Context& context, const TuningJob& job);

/// Tunes the kernels of a capture, and prints progress and a table of the program's kernels. The
/// exit code is 0 if there is a correct kernel for one of them, else 1.
Result<int> RunCaptureTuning(const Context& context, const jobs::OptimizeCaptureRequest& request);

/// Tunes the kernels of a model, and prints progress and what its plan consists of.
Result<int> RunModelTuning(const Context& context, const jobs::OptimizeModelRequest& request);

}  // namespace atunner::cli
