// Trivial outputs: zeros, a constant, a half-written output, a copy of an input. An instance on
// which one of them would pass proves nothing: the mean of normal inputs is close to 0, and zeros
// are within the budget.
#pragma once

#include "atunner/verify/budget/reference.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

/// Sets `discriminates` of the output with that number: false if a trivial output would be within
/// the budget, or if the output overflows. `buffers` hold the instance's inputs.
Status TestTrivialOutputs(const OracleContext& context, const TaskBuffers& buffers,
                          Reference& reference, size_t number);

}  // namespace atunner
