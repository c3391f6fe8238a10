// A training plan as text, as JSON and in Graphviz's language.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/fusion/training.h"
#include "atunner/model/json/json.h"

namespace atunner::fusion {

/// Groups with phase, level and predicted times, named fusions, memory; with `explain` also what
/// each gradient and update waits for, and the boundaries of the fusion plan.
std::string TextOf(const TrainingPlan& plan, bool explain);

/// JsonOf(plan.fusion) with "phases", "level", "needs", "starts_ns", "critical" and "live_bytes" in
/// each group, and "values", "fusions" and "memory".
Json JsonOf(const TrainingPlan& plan);

/// A node for each group, ranked by level and coloured by phase; critical ones are bold.
std::string DotOf(const TrainingPlan& plan);

/// The times of the step's groups and its memory, as `predict` shows them. `target` is the device.
std::string PredictionText(const TrainingPlan& plan, const std::string& target);
Json PredictionJson(const TrainingPlan& plan, const std::string& target);

struct BatchPrediction {
  int64_t batch = 0;
  TrainingPlan plan;
};

/// A row for each size of the batch: time of a step, steps and samples per second, launches, peak
/// memory.
std::string PredictionText(const std::vector<BatchPrediction>& rows, const std::string& target);
/// {"gpu", "batches": [PredictionJson with "batch" and "samples_per_second"]}
Json PredictionJson(const std::vector<BatchPrediction>& rows, const std::string& target);

}  // namespace atunner::fusion
