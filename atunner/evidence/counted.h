// The counters of a launch on the virtual GPU.
#pragma once

#include "atunner/evidence/counters.h"
#include "atunner/model/trial/performance.h"
#include "atunner/vgpu/timing/estimate.h"

namespace atunner::evidence {

/// `estimate` is EstimateTime of `launch`.
CounterSet CountersOf(const vgpu::EstimateInput& launch, const Estimate& estimate);

/// ns of the estimate's part of that name; 0 if it has none.
double PartNs(const Estimate& estimate, std::string_view part);

}  // namespace atunner::evidence
