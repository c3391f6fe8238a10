// How many inputs a result of a user's kernel depends on: about as many terms its sums have.
//
// One element of an input is replaced by another one of the same tensor, and the results that
// change are counted. An input of A elements, each of which is part of f of an output's C results,
// gives f·A/C inputs for each result. A sum of rows has f = 1 and A/C columns, a softmax f =
// columns and A = C, a product of matrices f = N and A/C = K/N.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "atunner/verify/budget/reference.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

/// The largest number over all float inputs, by floating-point output; at least 1. `run` runs the
/// kernel on `buffers`. Outputs larger than the host reads in a moment are left out.
Result<std::map<std::string, double>> MeasureFanIn(const OracleContext& context,
                                                   const TaskBuffers& buffers,
                                                   const std::function<Status()>& run);

}  // namespace atunner
