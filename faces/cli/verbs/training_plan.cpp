#include "faces/cli/verbs/training_plan.h"

#include "atunner/importers/import_model.h"

namespace atunner::cli {
namespace {

fusion::StepRole RoleOf(importers::OutputRole role) {
  switch (role) {
    case importers::OutputRole::kLoss:
      return fusion::StepRole::kLoss;
    case importers::OutputRole::kGradient:
      return fusion::StepRole::kGradient;
    case importers::OutputRole::kUpdate:
      return fusion::StepRole::kUpdate;
    case importers::OutputRole::kResult:
      break;
  }
  return fusion::StepRole::kResult;
}

}  // namespace

Result<fusion::TrainingPlan> PlanOfStep(const ModelSource& source, const DeviceProfile& profile,
                                        fusion::Roundings roundings) {
  if (!source.model)
    return Invalid("a graph in text form does not say what is a gradient", source.graph.name(),
                   "give a file that atunner.capture_step wrote");
  fusion::TrainingRequest request{.plan = {.roundings = roundings}};
  for (const importers::ModelOutput& output : source.model->outputs)
    request.outputs.push_back({output.name, RoleOf(output.role), output.of});
  return fusion::PlanTraining(source.graph, request, profile);
}

}  // namespace atunner::cli
