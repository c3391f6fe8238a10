// Which runs of the store another one can learn from.
#pragma once

#include <string>
#include <vector>

#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/search/surrogate/prior.h"
#include "atunner/store/store.h"

namespace atunner {

/// A run to learn from.
struct PriorRun {
  std::string run;  ///< id
  PastRun past;
};

/// Runs of the same kernel that are clearly alike, nearest first, at most three: the same kind of
/// evidence, name and argument types, the same parameters with at least half of their values, every
/// size within a factor of 8, and at least 20 trials that did not fail. Runs on the same device
/// come first, then those of the nearest sizes.
Result<std::vector<PriorRun>> PriorRunsFor(Store& store, const RunRecord& run,
                                           const KernelSpec& spec, const ParameterSpace& space);

}  // namespace atunner
