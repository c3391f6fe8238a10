// From a divided model and the artifacts of its kernels to an execution plan. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/importers/divide_model.h"
#include "atunner/model/artifact/artifact.h"
#include "atunner/model/plan/execution_plan.h"

namespace atunner::jobs {

/// A kernel of a segment.
struct PlannedLaunch {
  size_t kernel = 0;  ///< index into the artifacts
  /// The segment's name of each tensor of the artifact's task: an input or output of its graph, or
  /// a value between its kernels.
  std::map<std::string, std::string> names;
};
using PlannedSegment = std::vector<PlannedLaunch>;

/// The artifact of a kernel, its folder from the plan's own, and its PTX, if it is known.
struct PlannedKernel {
  std::string folder;
  Artifact artifact;
  std::string ptx = {};
};

/// The plan without the places of weights: `segments` are those of the model, in order. Weights
/// without a place in the model's file become inputs, and weights that nothing reads are left out.
/// A result that another result or an input is already becomes a copy, and so does the new value of
/// an input or buffer that the model changes, unless its kernel can write it in place.
Result<ExecutionPlan> BuildPlan(const importers::DividedModel& model,
                                const std::vector<PlannedSegment>& segments,
                                const std::vector<PlannedKernel>& kernels);

}  // namespace atunner::jobs
