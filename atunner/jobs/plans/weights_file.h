// The weights of a model as one file of dense tensors, from which a plan loads them.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/importers/divide_model.h"
#include "atunner/model/plan/execution_plan.h"

namespace atunner::jobs {

/// Writes the weights that the plan reads to `folder`/weights.bin and sets their offsets, the
/// file's size and its digest in the plan. Equal places of the model's file, such as tied weights,
/// are written once. `source` is the model's file, whose bytes are mapped and copied row by row
/// where a tensor is not dense. Without weights no file is written.
Status WriteWeights(const Path& folder, const Path& source,
                    const std::vector<importers::DividedInput>& inputs, ExecutionPlan& plan);

}  // namespace atunner::jobs
