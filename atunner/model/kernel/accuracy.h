// The accuracy that a task asks for: an attribute of the task, like those of its operator.
#pragma once

#include <optional>
#include <string_view>

#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

/// How far from the exact result a kernel may be (docs/verification.md).
enum class Accuracy : uint8_t {
  kStrict,   ///< as far as the plain kernel of the task's types
  kDefault,  ///< four times as far as kStrict
  kFast,     ///< as far as a kernel in the next narrower type: TF32 for float32
};
/// "strict", "default", "fast".
std::string_view Name(Accuracy accuracy);
std::optional<Accuracy> ParseAccuracy(std::string_view name);

/// The task's attribute "accuracy"; kDefault where it has none.
Accuracy AccuracyOf(const KernelSpec& spec);
/// kDefault removes the attribute: the task then equals one that never had it and shares its
/// trials.
void SetAccuracy(KernelSpec& spec, Accuracy accuracy);

}  // namespace atunner
