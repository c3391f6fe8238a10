// A request for a parallel plan in the user's words, and the planner's own.
#pragma once

#include <cstdint>
#include <string>

#include "atunner/base/result.h"
#include "atunner/importers/import_model.h"
#include "atunner/planning/parallel/parallel_plan.h"

namespace atunner::jobs {

struct ParallelModelRequest {
  std::string model;            ///< a file
  std::string gpus = "1xH100";  ///< number and name of a profile
  int64_t batch = 0;            ///< samples of a step on all GPUs; 0: the model's batch on each GPU
  double capacity_gb = 0;       ///< of one GPU; 0: kUsableMemory of the profile's memory
  double optimizer_bytes = 8;   ///< of one parameter
  std::string comm_table;       ///< a file that `comm tune` wrote, or empty
  std::string measured;         ///< a file of passes that one GPU was measured with, or empty
  planning::PlanObjective objective = planning::PlanObjective::kTime;
};

/// The rest of a GPU's memory is left to the framework, the libraries and fragmentation.
inline constexpr double kUsableMemory = 0.92;

/// Reads model, profile and table. Errors name the file, or the field of the request.
Result<planning::ParallelRequest> ReadParallelRequest(const ParallelModelRequest& request);
/// The same for a model that was read before.
Result<planning::ParallelRequest> ReadParallelRequest(const ParallelModelRequest& request,
                                                      const importers::ImportedModel& model);

}  // namespace atunner::jobs
