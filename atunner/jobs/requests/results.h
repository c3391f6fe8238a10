// Results of jobs: plain values that own their contents. Faces render them.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/device/device.h"
#include "atunner/intake/user_kernel.h"
#include "atunner/jobs/requests/target.h"
#include "atunner/model/json/json.h"
#include "atunner/report/report.h"
#include "atunner/vgpu/engine.h"

namespace atunner::jobs {

/// One tuned task.
struct RunResult {
  Report report;
  Json summary;                  ///< what the store keeps of the run, with "artifact" and "report"
  std::optional<Path> artifact;  ///< the winner's folder, if there is a winner
  Path page;                     ///< report.html
  bool found() const { return report.best.has_value(); }
};

/// The result of `optimize`, `tune` and `hardware-optimize`.
struct TuningResult {
  std::vector<RunResult> runs;  ///< one for each size; none if the job ended after a stage
  /// The request named several sizes: `out` holds one artifact for each.
  bool several = false;
  Path out;
  /// True if there is a correct kernel for every size.
  bool AllFound() const;
};

/// A bare .cu file as it was understood.
struct UnderstoodKernel {
  UserKernel kernel;
};

/// Findings of all launches of one kernel.
struct SanitizedKernel {
  std::string kernel;
  std::string configuration;  ///< "tile=16, unroll=4"; "" when there is nothing to choose
  std::string gpu;
  std::vector<Hazard> hazards;
  std::string printed;     ///< by the kernels
  std::string incomplete;  ///< why not every step was run; "" = every step was run
  uint64_t blocks = 0;
  std::string source_name;  ///< what hazards call the source's file
  std::string source;
  Path folder;  ///< of that file
  bool clean() const { return hazards.empty() && incomplete.empty(); }
};

struct SanitizeResult {
  std::vector<SanitizedKernel> kernels;
  std::optional<Error> refused;  ///< the last kernel among several that could not be run
};

/// Costs of each source line.
struct CountResult {
  std::string kernel;
  std::string configuration;
  std::string gpu;
  uint64_t blocks = 0;
  vgpu::LineCounts lines;
  vgpu::Counts counts;
  std::string source_name;
  std::string source;
  Path folder;
};

/// One configuration's predicted time, or why there is none.
struct Prediction {
  Configuration configuration;
  std::string described;  ///< "tile=16, unroll=4"
  std::optional<Estimate> estimate;
  std::optional<Error> error;
  double seconds = 0;             ///< that the prediction took
  Json launches = Json::array();  ///< what was counted, if that was asked for
};

struct PredictedKernel {
  std::string kernel;
  std::string gpu;          ///< full name
  std::string calibration;  ///< where the time model's constants are from
  double seconds = 0;
  std::vector<Prediction> predictions;
};

struct PredictResult {
  /// A kernel among several that is not predicted has an error instead.
  struct Item {
    std::string kernel;
    Result<PredictedKernel> predicted;
  };
  std::vector<Item> kernels;
  bool any() const;  ///< true if one configuration has an estimate
};

/// One size of a benchmark.
struct BenchmarkRow {
  std::vector<std::vector<int64_t>> shapes;
  Report report;
};
struct BenchmarkResult {
  std::string gpu;
  Evidence evidence = Evidence::kPredicted;
  std::vector<BenchmarkRow> rows;
};

struct VerifyResult {
  std::string name;  ///< of the artifact
  std::string gpu;
  Evidence evidence = Evidence::kPredicted;
  uint64_t seed = 0;
  Verdict verdict;
  std::optional<double> ns;
};

/// {"configuration": …, "estimate": …} or {"configuration": …, "error": …}.
Json ToJson(const Prediction& prediction);
Json ToJson(const PredictedKernel& kernel);
/// {"shape": […], "best_ns": …, "floor_ns": …, "baselines": […]}.
Json ToJson(const BenchmarkRow& row);
Json ToJson(const UnderstoodKernel& understood);

}  // namespace atunner::jobs
