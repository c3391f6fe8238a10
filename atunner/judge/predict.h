// The predicted time of a whole launch plan at the task's own size, from the virtual GPU.
#pragma once

#include "atunner/device/device.h"
#include "atunner/judge/prediction_buffers.h"
#include "atunner/verify/verifier.h"

namespace atunner {

/// Sum over the plan's steps; parts are merged by name. `module` is the candidate's, loaded;
/// `buffers` get new poison.
Result<Estimate> PredictPlan(PredictingDevice& device, const KernelSpec& spec,
                             const CandidateKernel& candidate, LoadedModule& module,
                             PredictionBuffers& buffers);

}  // namespace atunner
