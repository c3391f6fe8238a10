#include "faces/cli/verbs/training_plan.h"

#include "atunner/jobs/requests/step_outputs.h"

namespace atunner::cli {

Result<fusion::TrainingPlan> PlanOfStep(const ModelSource& source, const DeviceProfile& profile,
                                        fusion::Roundings roundings) {
  if (!source.model)
    return Invalid("a graph in text form does not say what is a gradient", source.graph.name(),
                   "give a file that atunner.capture_step wrote");
  const fusion::TrainingRequest request{.plan = {.roundings = roundings},
                                        .outputs = jobs::StepOutputsOf(*source.model)};
  return fusion::PlanTraining(source.graph, request, profile);
}

}  // namespace atunner::cli
