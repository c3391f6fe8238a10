// Predicts the times of listed configurations on the virtual GPU, without judging them.
#pragma once

#include <stop_token>
#include <vector>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner::jobs {

/// A kernel among several that cannot be predicted is left out with a KernelRefusedEvent.
/// kInvalidInput where the only kernel cannot be predicted, or where configurations are given for
/// several kernels.
Result<PredictResult> Predict(const PredictRequest& request, Services& services,
                              const EventSink& events, std::stop_token stop);

/// The times of some configurations of a template, in their order; fewer where `stop` came first.
Result<std::vector<Prediction>> PredictConfigurations(
    const ScheduleTemplate& schedule, const Target& target,
    const std::vector<Configuration>& configurations, Compiler& compiler, Clock& clock,
    const std::stop_token& stop);

}  // namespace atunner::jobs
