// Programs of testdata/ (tests/torch/fusion_patterns.py wrote them), and their plans.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "atunner/device/profiles.h"
#include "atunner/fusion/fusion_plan.h"
#include "atunner/fusion/training.h"
#include "atunner/importers/import_model.h"

namespace atunner::fusion {

inline importers::ImportedModel Recorded(const std::string& name) {
  const auto model = importers::ImportModel(
      std::string(ATUNNER_SOURCE_DIR "/atunner/fusion/testdata/") + name + ".json");
  if (!model) ADD_FAILURE() << model.error().ToString();
  return model.value();
}

inline FusionPlan PlanOf(const std::string& name, Roundings roundings = Roundings::kWhereExact) {
  const importers::ImportedModel model = Recorded(name);
  PlanRequest request{.roundings = roundings};
  for (const auto& input : model.inputs)
    request.inputs.push_back({.weight = input.kind != importers::InputKind::kUser});
  auto plan = PlanFusion(model.graph, request, FindProfile("H200").value());
  if (!plan) ADD_FAILURE() << plan.error().ToString();
  return plan.value();
}

inline std::vector<std::string> FamiliesOf(const FusionPlan& plan) {
  std::vector<std::string> families;
  for (const FusedGroup& group : plan.groups) families.push_back(group.family);
  return families;
}

inline StepRole RoleOf(importers::OutputRole role) {
  return static_cast<StepRole>(static_cast<int>(role));
}

inline TrainingRequest RequestOf(const importers::ImportedModel& model) {
  TrainingRequest request;
  for (const auto& output : model.outputs)
    request.outputs.push_back({output.name, RoleOf(output.role), output.of});
  return request;
}

}  // namespace atunner::fusion
