// The predicted time of a whole launch plan at the task's own size, from the virtual GPU.
#pragma once

#include "atunner/device/device.h"
#include "atunner/verify/verifier.h"

namespace atunner {

/// Memory at the task's own size with inputs filled cheaply by the host: only a sample of the
/// blocks will read it.
Result<TaskBuffers> MakePredictionBuffers(PredictingDevice& device, const KernelSpec& spec);

/// Sum over the plan's steps; parts are merged by name. `module` is the candidate's, loaded.
Result<Estimate> PredictPlan(PredictingDevice& device, const KernelSpec& spec,
                             const CandidateKernel& candidate, LoadedModule& module,
                             const TaskBuffers& buffers);

}  // namespace atunner
