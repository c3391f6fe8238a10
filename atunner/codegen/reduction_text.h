// The text of a kernel that computes a ReductionProgram.
#pragma once

#include <string>
#include <vector>

#include "atunner/codegen/reduction_program.h"
#include "atunner/model/kernel_spec.h"

namespace atunner {

/// How an input lies along rows.
struct RowInput {
  graph::NodeId id = 0;
  size_t number = 0;     ///< among the graph's inputs
  bool columns = false;  ///< does it change within a row?
  bool rows = false;     ///< does it change from row to row?
  int passes = 0;        ///< that read it
};
std::vector<RowInput> RowInputsOf(const ReductionProgram& program);

struct ReductionSchedule {
  bool keeps = false;     ///< what several passes read stays in registers
  bool prefetch = false;  ///< the next rows are copied to shared memory meanwhile, or where these leave it
  bool staged = false;    ///< the rows of a block are copied to shared memory together, wherever they begin
  bool uneven = false;    ///< rows begin between vectors of memory
  bool narrow = false;    ///< functions as 16-bit results need them
};
/// Does the row's number alone say where the input has it?
bool HasRows(const ReductionProgram& program, const RowInput& input);

/// The kernel, for constants and helpers of kernels/graph in front of it.
std::string ReductionText(const ReductionProgram& program, const KernelSpec& spec, const ReductionSchedule& schedule);

}  // namespace atunner
