#include "atunner/model/kernel/tensor_totals.h"

#include <algorithm>
#include <limits>

namespace atunner {

TensorTotals TotalsOf(const KernelSpec& spec, const Dims& dims) {
  TensorTotals totals;
  for (const ArgSpec& arg : spec.args) {
    if (arg.role == Role::kScalar) continue;
    const auto shape = ShapeOf(arg, spec, dims);
    constexpr double kNone = std::numeric_limits<double>::infinity();
    const double elements = shape ? static_cast<double>(shape->elements) : kNone;
    totals.elements += elements;
    totals.bytes += shape ? static_cast<double>(shape->bytes) : kNone;
    totals.largest = std::max(totals.largest, elements);
  }
  return totals;
}

}  // namespace atunner
