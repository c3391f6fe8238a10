// The text of a kernel that computes a ReductionProgram over rows.
#pragma once

#include <string>
#include <vector>

#include "atunner/codegen/reduce/reduction_program.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// An input with an element for each of the space.
struct RowInput {
  graph::NodeId id = 0;
  int passes = 0;  ///< that read it
};
std::vector<RowInput> RowInputsOf(const ReductionProgram& program);

struct ReductionSchedule {
  int64_t vector = 1;
  bool keeps = false;  ///< what several passes read stays in registers
  /// The next rows are copied to shared memory meanwhile, or where these leave it
  bool prefetch = false;
  /// The rows of a block are copied to shared memory together, wherever they begin
  bool staged = false;
  bool uneven = false;  ///< rows begin between vectors of memory
  bool narrow = false;  ///< functions as 16-bit results need them
};

/// The kernel, for constants and helpers of kernels/graph in front of it.
std::string ReductionText(const ReductionProgram& program, const KernelSpec& spec,
                          const ReductionSchedule& schedule);

}  // namespace atunner
