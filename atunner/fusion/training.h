// A training step as a plan: phases, what gradients and updates wait for, groups that run at the
// same time, live memory, and the fusions that training allows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atunner/fusion/fusion_plan.h"

namespace atunner::fusion {

enum class StepRole { kResult, kLoss, kGradient, kUpdate };

/// What an output of the step's graph is.
struct StepOutput {
  std::string name;  ///< of the graph's output
  StepRole role = StepRole::kResult;
  std::string of;  ///< kGradient, kUpdate: the parameter, state or statistic that it belongs to
};

struct TrainingRequest {
  PlanRequest plan;
  std::vector<StepOutput> outputs;  ///< one for each output of the graph, in their order
};

/// The parts of a step that a group computes nodes of.
struct Phases {
  bool forward = false;          ///< the loss depends on it
  bool backward = false;         ///< gradients depend on it, the loss does not
  bool optimizer = false;        ///< only updates depend on it
  std::string ToString() const;  ///< "forward", "backward + optimizer"
};

/// One group's place in the order of a step.
struct GroupTiming {
  Phases phases;
  std::vector<size_t> needs;  ///< groups whose results it reads
  size_t level = 0;       ///< groups on the longest way to it; groups of one level are independent
  double starts_ns = 0;   ///< predicted, if every group runs as soon as it can
  bool critical = false;  ///< a delay of it delays the step
  double live_bytes = 0;  ///< while it runs: weights, states, batch, and values in use
};

/// When a gradient, an update or the loss is ready.
struct StepValue {
  StepOutput output;
  size_t group = 0;
  size_t waits_for = 0;  ///< groups that must have run before its own
  double ready_ns = 0;   ///< predicted, if every group runs as soon as it can
};

/// A fusion that only training steps have, or need.
struct NamedFusion {
  std::string name;
  size_t group = 0;
  std::string reason;
};

struct TrainingPlan {
  FusionPlan fusion;
  std::vector<GroupTiming> groups;  ///< one for each group of the fusion plan
  std::vector<StepValue> values;
  std::vector<NamedFusion> fusions;
  double critical_ns = 0;       ///< predicted, with as many streams as there are independent groups
  double persistent_bytes = 0;  ///< parameters, states, statistics and the batch
  double saved_bytes = 0;       ///< values of the forward pass that the backward pass reads
  double peak_bytes = 0;        ///< the most that lives at once, without workspaces of kernels
  size_t peak_group = 0;
};

/// The plan of one step. As PlanFusion; kInvalidInput if no output is a gradient or an update.
Result<TrainingPlan> PlanTraining(const graph::ValidGraph& graph, const TrainingRequest& request,
                                  const DeviceProfile& profile);

}  // namespace atunner::fusion
