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

/// The kernel, for constants and helpers of kernels/graph in front of it. `keeps`: what several passes read stays in
/// registers.
std::string ReductionText(const ReductionProgram& program, const KernelSpec& spec, bool keeps, bool narrow);

}  // namespace atunner
