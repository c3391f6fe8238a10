// `system`: from a configuration to the settings of a whole training run. A state graph:
//
//     model ─┬─ fusion ────────┐
//            ├─ communication ─┼─ choose
//            └─ parallel ──────┘
//
// Without a GPU every time is predicted. Measured all-reduces count if the configuration names a
// table of them.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/jobs/system/parallel_request.h"
#include "atunner/jobs/system/system_config.h"
#include "atunner/model/json/json.h"
#include "atunner/planning/parallel/parallel_plan.h"

namespace atunner::jobs {

/// A group of the model that one kernel computes; the slowest come first.
struct HotKernel {
  std::string name;  ///< its family and place: "matmul, group 12"
  double us = 0;     ///< predicted, of one pass over the model's batch
  double share = 0;  ///< of all groups
};

/// What one step of the optimisation changes.
struct SystemStep {
  std::string name;
  double step_us = 0;  ///< predicted, with all steps up to here
  double samples_per_second = 0;
  double bytes = 0;  ///< predicted, of one GPU
  /// Its part of the whole gain of the objective (its logarithm); steps can be negative
  double share = 0;
  std::string reason;
};

/// One setting before and after.
struct SettingChange {
  std::string key, before, after;
};

struct SystemResult {
  SystemConfig config;
  planning::ParallelRequest request;  ///< with the batch that was chosen
  planning::ParallelPlan plan;
  std::vector<HotKernel> hot;
  size_t kernels_before = 0, kernels_after = 0;
  double bytes_before = 0, bytes_after = 0;  ///< of memory traffic: each node alone, and fused
  std::vector<SystemStep> steps;             ///< the first is the run as it is today
  std::vector<SettingChange> changes;
  std::string explanation;  ///< why this plan and not those of the other objectives
  std::vector<std::string> notes;
};

/// Errors name keys of the configuration.
Result<SystemResult> OptimizeSystem(const SystemConfig& config);

}  // namespace atunner::jobs
