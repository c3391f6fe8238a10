#include "atunner/verify/launch/memory_limits.h"

#include <algorithm>

#include "atunner/model/kernel/tensor_totals.h"

namespace atunner {

bool MemoryLimits::IsLarge(const Device& device, const KernelSpec& spec, const Dims& dims) const {
  return !device.checks_bounds() && TotalsOf(spec, dims).bytes >= large_bytes;
}

uint64_t MemoryLimits::Extra(const KernelSpec& spec, const Dims& dims) const {
  constexpr double kMost = 1e15;  // beyond every memory, and a number of bytes all the same
  return static_cast<uint64_t>(std::min(kMost, TotalsOf(spec, dims).bytes)) + more_bytes;
}

}  // namespace atunner
