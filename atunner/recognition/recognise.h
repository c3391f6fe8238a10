// Recognises a user's kernel as an operator, by running it:
//
//   kernel ──► runs on random inputs at a small size ──► which buffer it writes
//          ──► hypotheses from sizes and scalars ──► those that hold on all runs ──► the graph at
//              the task's own size
//
// A hypothesis that holds is no proof: it is a reason to let the judge compare the operator's
// kernel with the user's.
#pragma once

#include <optional>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/recognition/hypothesis.h"

namespace atunner::recognition {

/// The facts at `dims`; nothing counts as written. `plan`: of the kernel.
Result<Facts> FactsOf(const KernelSpec& spec, const LaunchPlan& plan, const Dims& dims);

/// The hypothesis that holds, at the task's own size; nullopt if none does. `check_dims`: smaller
/// sizes at which the binary is valid; without them the kernel runs at its own size.
/// `device` is a virtual GPU. Errors as of RunSamples.
Result<std::optional<Hypothesis>> Recognise(const RenderedKernel& kernel, const KernelSpec& spec,
                                            const std::vector<Dims>& check_dims, Device& device,
                                            Compiler& compiler);

}  // namespace atunner::recognition
