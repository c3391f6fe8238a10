// Baseline kernels of a graph: one simple kernel per node. In the task's precision they are the
// baseline "naive" and the source of the error budget; in float64 they are the reference for sizes
// that are too large for the CPU.
#pragma once

#include "atunner/cuda_text/rounding.h"
#include "atunner/graph/graph.h"
#include "atunner/model/kernel/kernel_spec.h"

namespace atunner::graph {

enum class BaselineForm : uint8_t {
  kNaive,
  /// Bit for bit the results of kNaive, in less time: matrix products use shared-memory tiles
  kErrorBaseline,
  kStoredDecisions,  ///< like kErrorBaseline, after WithDecisionOperandsStored
  kReference,        ///< like kErrorBaseline, with arithmetic, workspaces and outputs in float64
};

/// The kernels of a graph. Launch sizes are expressions over the graph's symbols. kUnsupported for
/// constants of more than 4096 elements.
Result<RenderedKernel> BaselineKernels(const ValidGraph& graph, BaselineForm form);
/// The roundings of each step in the launch plan of BaselineKernels. The first arguments of a step
/// are the operands, the next one is the result.
Result<std::vector<StepRounding>> BaselineRoundings(const ValidGraph& graph, BaselineForm form);

/// The includes and device functions that every generated kernel begins with. Those for 8-bit
/// floats are added if `text`, which follows, uses them.
std::string KernelPrelude(std::string_view text = {});

/// The extent as an expression over the task's dims, for shapes and launches.
Expr ExprOf(const Extent& extent);

}  // namespace atunner::graph
