// The time of a launch if one cause were removed, by the time model: what an idea may gain.
#pragma once

#include <optional>

#include "atunner/evidence/classify.h"
#include "atunner/vgpu/timing/estimate.h"

namespace atunner::evidence {

/// Time over the time without the cause, at least 1; nullopt for limits, and for barriers, of whose
/// waits the time model knows nothing.
std::optional<double> GainWithout(Bottleneck cause, const vgpu::EstimateInput& launch);

}  // namespace atunner::evidence
