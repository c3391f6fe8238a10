// What the outputs of an imported training step are, in the words of the room `fusion`.
#pragma once

#include <vector>

#include "atunner/fusion/training.h"
#include "atunner/importers/import_model.h"

namespace atunner::jobs {

/// One for each output of the model's graph, in their order.
std::vector<fusion::StepOutput> StepOutputsOf(const importers::ImportedModel& model);

}  // namespace atunner::jobs
