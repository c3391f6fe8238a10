// A PyTorch program or an ONNX model in, a folder with an execution plan out.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/jobs/requests/results.h"
#include "atunner/jobs/requests/services.h"
#include "atunner/model/kernel/conv_precision.h"
#include "atunner/model/plan/execution_plan.h"

namespace atunner::jobs {

struct OptimizeModelRequest {
  Path model;
  /// Without a search the first configurations are compiled at once, in parallel. A kernel whose
  /// first one is not right gets another one.
  TuningOptions tuning;
  Accuracy accuracy = Accuracy::kDefault;
  Dims sizes;  ///< of the open axes of an ONNX model, by name
  /// How exact convolutions in float32 are whose accuracy is the default.
  ConvPrecision conv_precision = ConvPrecision::kFloat32;
};

struct OptimizeModelResult {
  ExecutionPlan plan;
  Path out;                        ///< the plan's folder
  std::vector<RunResult> kernels;  ///< one for each of the plan's kernels
  std::vector<std::string> notes;  ///< what is left to the framework, and how the file was read
  uint64_t unshared_bytes = 0;     ///< what the intermediates would take without sharing memory
  double KernelNs() const;         ///< the sum of the launches' times, each alone
};

/// Divides the model into graphs and operators of the framework, and the graphs into kernels, tunes
/// each distinct kernel once, and writes the plan: plan.json, an artifact for each kernel, and the
/// weights. plan.json comes last, so that half of a folder is no plan. The folder may be missing,
/// empty, or hold an earlier plan, which is replaced; anything else is refused before the run.
/// kUnsupported if no correct kernel was found for a part.
Result<OptimizeModelResult> OptimizeModel(const OptimizeModelRequest& request, Services& services,
                                          const EventSink& events, std::stop_token stop);

Json ToJson(const OptimizeModelResult& result);

}  // namespace atunner::jobs
