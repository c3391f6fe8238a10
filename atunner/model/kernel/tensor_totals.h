// How large a task is: sums over all of its tensors.
#pragma once

#include "atunner/model/kernel/kernel_spec.h"

namespace atunner {

struct TensorTotals {
  double elements = 0;  ///< of all tensors
  double bytes = 0;     ///< of all tensors
  double largest = 0;   ///< elements of the largest tensor
};

/// Infinite if a tensor has no valid shape at these sizes.
TensorTotals TotalsOf(const KernelSpec& spec, const Dims& dims);

}  // namespace atunner
