// The text of the kernels that compute a ReductionProgram.
#pragma once

#include <string>
#include <vector>

#include "atunner/codegen/reduce/reduction_program.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

struct ColumnsSchedule {
  int64_t vector = 1;
  int64_t splits = 1;  ///< parts of what is reduced that blocks of their own work on
  int64_t unroll = 1;
  bool hold = false;  ///< elements between passes, in registers
  /// The same in shared memory, of parts of strips, which are written after others: one kernel
  bool ring = false;
  bool narrow = false;  ///< short functions, as 16-bit results need them
};

/// What a reduction's parts are kept in between kernels, where there are splits.
struct ColumnsPartial {
  graph::NodeId id = 0;
  std::string name;
  std::string type;  ///< of one part
  size_t bytes = 4;  ///< of it
};
/// What blocks with rings tell each other lies in words of 64 bits.
std::vector<ColumnsPartial> PartialsOf(const ReductionProgram& program, bool ring);

/// Names of the kernels in the order in which they run.
std::vector<std::string> ColumnsKernels(const ReductionProgram& program,
                                        const ColumnsSchedule& schedule);
/// Their text, for constants and helpers of kernels/graph in front of it.
std::string ColumnsText(const ReductionProgram& program, const KernelSpec& spec,
                        const ColumnsSchedule& schedule);

/// Is everything that elements are computed from where its coordinates say, and what rings park
/// used where it lies alone?
bool ColumnsCanBeWritten(const ReductionProgram& program, const ColumnsSchedule& schedule = {});

}  // namespace atunner
