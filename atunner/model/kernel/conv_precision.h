// How exactly the convolutions of a whole model multiply float32: an attribute of the model's task,
// which decides the accuracy of those parts that are convolutions.
#pragma once

#include <optional>
#include <string_view>

#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

enum class ConvPrecision : uint8_t {
  kFloat32,  ///< as the model's other parts
  /// As TF32, in which both operands have 11 significant bits: PyTorch's default for convolutions
  /// (torch.backends.cudnn.allow_tf32). Products of matrices are not concerned.
  kTf32,
};
/// "float32", "tf32".
std::string_view Name(ConvPrecision precision);
std::optional<ConvPrecision> ParseConvPrecision(std::string_view name);

/// The task's attribute "conv_precision"; kFloat32 where it has none.
ConvPrecision ConvPrecisionOf(const KernelSpec& spec);
/// kFloat32 removes the attribute, so that the task equals one that never had it.
void SetConvPrecision(KernelSpec& spec, ConvPrecision precision);

}  // namespace atunner
