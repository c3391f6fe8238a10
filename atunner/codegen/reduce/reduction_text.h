// The CUDA text of a last-axis reduction.
#pragma once

#include <string>
#include <vector>

#include "atunner/codegen/reduce/reduction_program.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// A streamed input: one with an element for each of the space.
struct RowInput {
  graph::NodeId id = 0;
  int passes = 0;  ///< passes that read it
};
std::vector<RowInput> RowInputsOf(const ReductionProgram& program);

struct ReductionSchedule {
  int64_t vector = 1;
  bool keeps = false;  ///< inputs that several passes read stay in registers
  /// The next rows are copied to shared memory meanwhile, or into the buffers that the current rows
  /// leave
  bool prefetch = false;
  /// The rows of a block are copied to shared memory together, at any alignment
  bool staged = false;
  bool uneven = false;  ///< rows begin at any element, not at multiples of a vector
  bool narrow = false;  ///< use the faster functions that are exact to 16-bit results
};

/// The kernel, for constants and helpers of kernels/graph in front of it.
std::string ReductionText(const ReductionProgram& program, const KernelSpec& spec,
                          const ReductionSchedule& schedule);

}  // namespace atunner
