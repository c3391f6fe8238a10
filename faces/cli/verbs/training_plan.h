// The plan of a training step that a file holds.
#pragma once

#include "atunner/fusion/training.h"
#include "faces/cli/flags/model_source.h"

namespace atunner::cli {

/// kInvalidInput if the file holds no training step.
Result<fusion::TrainingPlan> PlanOfStep(const ModelSource& source, const DeviceProfile& profile,
                                        fusion::Roundings roundings);

}  // namespace atunner::cli
