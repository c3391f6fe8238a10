// New values of weights and states that kernels write over the old ones, without a copy. Pure.
#pragma once

#include <string>
#include <vector>

#include "atunner/jobs/plans/plan_builder.h"

namespace atunner::jobs {

/// True if the kernel may get the same memory for the tensors `read` and `written` of its task: the
/// graph reads each element of `read` only to compute, element by element, outputs at the same
/// place in row-major order, and no launch reads `read` after the one that writes `written`.
/// Families read a thread's elements before they write results at their places.
bool WritesInPlace(const PlannedKernel& kernel, const std::string& read,
                   const std::string& written);

/// Removes copies of a step's result into an input or weight where the step can write there itself.
/// Steps that read the old value later are moved in front of it if they can be.
void UpdateInPlace(ExecutionPlan& plan, const std::vector<PlannedKernel>& kernels);

}  // namespace atunner::jobs
