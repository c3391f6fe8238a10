// Plain kernels that round as chance has it: a sample of what correct kernels of the same precision
// err by.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "atunner/cuda_text/rounding.h"
#include "atunner/verify/judge_kernels.h"
#include "atunner/verify/task_buffers.h"

namespace atunner {

/// Tensors that lie elsewhere than in a task's buffers, by name.
using RangeOf = std::function<std::optional<MemoryRange>(const std::string& name)>;

/// Who decides what computed values decide.
enum class Decisions : uint8_t {
  kPlain,  ///< the plain kernel's values
  kFixed,  ///< likewise; values have one version each, as with kFree and the same seed
  kFree,   ///< the run's own values, which are moved further
};

/// Plain kernels and where they round.
struct PerturbedTask {
  Device& device;
  JudgeKernels& kernels;
  LoadedModule& module;
  const LaunchPlan& plan;
  const std::vector<graph::StepRounding>& steps;
  const KernelSpec& spec;
  const TaskBuffers& buffers;
  Decisions decisions = Decisions::kPlain;
};

/// One run. Whatever is rounded, results, products and partial sums, is moved by a unit in its last
/// place or not. Where the plain kernel decides, what several steps read is computed twice, rounded
/// one way and the other, and each of them reads one of the two: kernels may compute it by several
/// formulas, so that what is equal in exact arithmetic does not cancel exactly. `seed` says how;
/// inputs stay as they are.
Status RunPerturbed(const PerturbedTask& task, const RangeOf& tensors, uint64_t seed);

}  // namespace atunner
