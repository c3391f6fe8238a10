// Searches for the fastest strategy that fits into memory.
//
// Pipeline, tensor and data parallelism, ZeRO and microbatches are enumerated. For each, dynamic
// programming over the layers divides them into stages, and inside each stage chooses the layers
// that are recomputed. Both keep all Pareto-optimal partial answers (slowest stage, sum and exposed
// communication; time and memory), so that the answer is the best one under the cost model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/json/json.h"
#include "atunner/planning/parallel/strategy.h"

namespace atunner::planning {

enum class PlanObjective : uint8_t { kTime, kMemory };

struct ParallelRequest {
  ModelProfile model;
  ClusterProfile cluster;
  TrainingFacts facts;
  PlanObjective objective = PlanObjective::kTime;
  size_t alternatives = 5;  ///< further plans that are kept
};

struct PlannedStage {
  size_t first = 0, last = 0;  ///< layers [first, last)
  std::vector<size_t> recomputed;
  StageCost cost;
};

struct ParallelPlan {
  ParallelStrategy strategy;
  std::vector<PlannedStage> stages;
  double step_us = 0;     ///< predicted
  double bubble_us = 0;   ///< predicted: stages wait for each other
  double exposed_us = 0;  ///< predicted: communication of gradients that nothing hides
  double bytes = 0;       ///< predicted: most memory of one GPU
};

struct ParallelPlans {
  ParallelPlan best;
  std::vector<ParallelPlan> others;  ///< of other strategies, the best first
  size_t examined = 0;               ///< strategies
  size_t too_large = 0;              ///< strategies without a plan that fits
};

/// kInvalidInput names fields of the request. kUnsupported if no plan fits: it names the least
/// memory that one needs.
Result<ParallelPlans> PlanParallel(const ParallelRequest& request);

/// The best plan of one strategy; `capacity` in bytes. Empty stages if none fits.
ParallelPlan PlanStrategy(const ParallelRequest& request, const ParallelStrategy& strategy,
                          double capacity);

/// Strategies that use all GPUs and divide the batch evenly.
std::vector<ParallelStrategy> Strategies(const ParallelRequest& request);

/// Smallest bucket whose all-reduce spends at most 5 % of its time on latency; from 25 to 200 MB.
double BucketMegabytes(const LinkModel& link, int gpus);

}  // namespace atunner::planning
