// The memory of a prediction: inputs and poison at the task's own size.
//
// A candidate must not be able to tell a prediction from a verification. So inputs are those of the
// family `normal`, and outputs and workspaces hold poison, as there; all seeds are secret.
#pragma once

#include "atunner/device/device.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

/// Memory at the task's own size with inputs and poisoned outputs, filled by the host: the virtual
/// GPU would take longer, and only a sample of the blocks will read it. Memory beyond the first
/// 512 MiB of a tensor stays zero, in pages that cost nothing.
Result<TaskBuffers> MakePredictionBuffers(PredictingDevice& device, const KernelSpec& spec);

/// Fills outputs (not in-out tensors), of which an earlier prediction has left parts, and the
/// plan's workspaces with fresh poison.
Status PoisonForPrediction(PredictingDevice& device, const TaskBuffers& buffers,
                           const BoundPlan& plan);

}  // namespace atunner
