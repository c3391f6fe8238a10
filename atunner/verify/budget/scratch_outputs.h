// Memory for the outputs of further baseline runs, so that a candidate's outputs stay as they are.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "atunner/verify/budget/baseline.h"
#include "atunner/verify/budget/reference.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

/// One buffer per output, in the order of Reference::outputs.
using ScratchOutputs = std::vector<std::unique_ptr<Buffer>>;

/// nullopt if two sets of these and the baseline's workspaces, several times over as perturbed runs
/// have them, would take more than half of the free memory or, for a large task, more than what
/// the reference leaves of MemoryLimits::Extra.
Result<std::optional<ScratchOutputs>> AllocateScratchOutputs(const OracleContext& context,
                                                             ErrorBaseline& baseline,
                                                             const TaskBuffers& buffers,
                                                             const Reference& reference);

/// The ranges of `outputs` by the outputs' names. Both must outlive the result.
RangeOf RangesOf(const Reference& reference, const ScratchOutputs& outputs);

}  // namespace atunner
