// Runs of the baseline kernels with random roundings: samples of the error of correct kernels of
// the same precision.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "atunner/cuda_text/rounding.h"
#include "atunner/verify/launch/judge_kernels.h"
#include "atunner/verify/launch/task_buffers.h"

namespace atunner {

/// The memory of tensors that are not in the task's buffers, by name; nullopt for all others.
using RangeOf = std::function<std::optional<MemoryRange>(const std::string& name)>;

/// The values that data-dependent decisions (argmax, comparison, rounding to an integer) follow.
enum class DecisionSource : uint8_t {
  kBaseline,  ///< the unperturbed baseline's values
  /// The unperturbed baseline's values. Everything else is as with kOwn and the same seed, bit for
  /// bit: the two runs differ by their decisions alone.
  kBaselineReplay,
  kOwn,  ///< the run's own values, each moved by up to two units in the last place
};

/// Baseline kernels and where each of their steps rounds.
struct PerturbedTask {
  Device& device;
  JudgeKernels& kernels;
  LoadedModule& module;
  const LaunchPlan& plan;
  const std::vector<graph::StepRounding>& steps;
  const KernelSpec& spec;
  const TaskBuffers& buffers;
  DecisionSource decisions = DecisionSource::kBaseline;
};

/// One run. Each rounded value (result, product, partial sum) is moved by one unit in its last
/// place or left alone, at random by `seed`; inputs stay. With DecisionSource::kBaseline a value
/// that several steps read is computed twice, rounded differently, and each reader gets one of the
/// two. That stands for kernels that compute the value by two formulas: a - b with a = b in exact
/// arithmetic is then a few roundings instead of exactly 0.
Status RunPerturbed(const PerturbedTask& task, const RangeOf& tensors, uint64_t seed);

}  // namespace atunner
