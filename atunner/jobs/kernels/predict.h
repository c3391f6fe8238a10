// Predicts the times of listed configurations on the virtual GPU, without judging them.
#pragma once

#include <stop_token>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"

namespace atunner::jobs {

/// A kernel among several that cannot be predicted is left out with a KernelRefusedEvent.
/// kInvalidInput where the only kernel cannot be predicted, or where configurations are given for
/// several kernels.
Result<PredictResult> Predict(const PredictRequest& request, Services& services,
                              const EventSink& events, std::stop_token stop);

}  // namespace atunner::jobs
