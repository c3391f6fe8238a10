#include "atunner/jobs/requests/step_outputs.h"

namespace atunner::jobs {
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

std::vector<fusion::StepOutput> StepOutputsOf(const importers::ImportedModel& model) {
  std::vector<fusion::StepOutput> outputs;
  for (const importers::ModelOutput& output : model.outputs)
    outputs.push_back({output.name, RoleOf(output.role), output.of});
  return outputs;
}

}  // namespace atunner::jobs
