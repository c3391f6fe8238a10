// The CUDA text of outer-axis reductions (and of last-axis reductions of few long rows).
#pragma once

#include <string>
#include <vector>

#include "atunner/codegen/reduce/columns_schedule.h"
#include "atunner/codegen/reduce/reduction_program.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// Names of the kernels in the order in which they run.
std::vector<std::string> ColumnsKernels(const ReductionProgram& program,
                                        const ColumnsSchedule& schedule);
/// Their text, for constants and helpers of kernels/graph in front of it.
std::string ColumnsText(const ReductionProgram& program, const KernelSpec& spec,
                        const ColumnsSchedule& schedule);

/// True if every element is computed from elements at its own coordinates, as these kernels need
/// it.
bool ColumnsCanBeWritten(const ReductionProgram& program, const ColumnsSchedule& schedule = {});

}  // namespace atunner
