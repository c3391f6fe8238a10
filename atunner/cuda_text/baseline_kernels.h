// A graph as plain kernels, one per node and as simple as can be: the honest algorithm of the
// task's precision, and in float64 the reference for sizes that are too large for the CPU.
#pragma once

#include "atunner/cuda_text/rounding.h"
#include "atunner/graph/graph.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner::graph {

enum class BaselineForm : uint8_t {
  kNaive,
  /// Products of matrices keep what they load for several results, which stay bit for bit the same
  kErrorBaseline,
  kStoredDecisions,  ///< as kErrorBaseline, after WithDecisionOperandsStored
  kReference,        ///< as kErrorBaseline, with arithmetic, workspaces and outputs in float64
};

/// The launch is an expression over the graph's symbols. kUnsupported for long tables of constants.
Result<RenderedKernel> BaselineKernels(const ValidGraph& graph, BaselineForm form);
/// Of each step of BaselineKernels' launch: its first arguments are the operands, the next one is
/// the result.
Result<std::vector<StepRounding>> BaselineRoundings(const ValidGraph& graph, BaselineForm form);

/// Includes and device functions that every emitted kernel begins with; those for 8-bit floats
/// where `text`, which follows, names them.
std::string KernelPrelude(std::string_view text = {});

/// The extent as an expression over dims, for shapes and launches.
Expr ExprOf(const Extent& extent);

}  // namespace atunner::graph
