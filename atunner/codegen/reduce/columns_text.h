// The CUDA text of outer-axis reductions (and of last-axis reductions of few long rows).
#pragma once

#include <string>
#include <vector>

#include "atunner/codegen/reduce/reduction_program.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

struct ColumnsSchedule {
  int64_t vector = 1;
  int64_t splits = 1;  ///< blocks that share the reduction of one column
  int64_t unroll = 1;
  bool hold = false;  ///< keep the elements in registers between passes
  /// Keep a segment of a column in a ring in shared memory and write it some segments later, so
  /// that one kernel does both passes (columns_ring_text.cpp).
  bool ring = false;
  bool narrow = false;  ///< use the faster functions that are exact to 16-bit results
};

/// The workspace of a reduction's partial results, one for each of the splits.
struct ColumnsPartial {
  graph::NodeId id = 0;
  std::string name;
  std::string type;  ///< of one partial result
  size_t bytes = 4;  ///< of one partial result
};
/// One workspace per reduction; with `ring` one for all, of 64-bit words that each hold 32 bits of
/// data and a flag.
std::vector<ColumnsPartial> PartialsOf(const ReductionProgram& program, bool ring);

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
