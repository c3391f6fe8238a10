// From a request's operator or graph to the tasks that are tuned.
#pragma once

#include <vector>

#include "atunner/jobs/requests/requests.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner::jobs {

/// A task for each combination of the sizes that are named. kInvalidInput for an unknown operator,
/// and for shapes, attributes, a graph or sizes that are wrong.
Result<std::vector<KernelSpec>> SpecsOf(const TaskRequest& request);

/// The one task of a request. kInvalidInput where it names several sizes.
Result<KernelSpec> SpecOf(const TaskRequest& request);

}  // namespace atunner::jobs
