// How accurate a task wants its kernel: a setting of the task, as the operator's own are.
#pragma once

#include <optional>
#include <string_view>

#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// How far from the exact result a kernel may be (docs/verification.md).
enum class Accuracy : uint8_t {
  kStrict,   ///< not further than the plain kernel of the task's types
  kDefault,  ///< four times as far
  kFast,     ///< as one that computes in the next narrower type: TF32 for float32
};
/// "strict", "default", "fast".
std::string_view Name(Accuracy accuracy);
std::optional<Accuracy> ParseAccuracy(std::string_view name);

/// The task's attribute "accuracy"; kDefault where it has none.
Accuracy AccuracyOf(const KernelSpec& spec);
/// kDefault leaves the task as it is without the attribute, so that it shares trials with those
/// that never had one.
void SetAccuracy(KernelSpec& spec, Accuracy accuracy);

}  // namespace atunner
