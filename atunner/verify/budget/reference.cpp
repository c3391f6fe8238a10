#include "atunner/verify/budget/reference.h"

#include <algorithm>

namespace atunner {
namespace {

constexpr uint64_t kSmallBytes = 8 << 20;
/// Share of an output's elements that may be undetermined; beyond it the others prove too little.
constexpr double kMostUndetermined = 0.25;

}  // namespace

void Reference::DropValues() {
  for (Output& output : outputs) output.masked.reset();
}

bool Reference::HasValues() const {
  return std::ranges::all_of(outputs,
                             [](const Output& output) { return output.masked != nullptr; });
}

bool Reference::small() const { return bytes < kSmallBytes; }

bool Reference::discriminates() const {
  return !mostly_undetermined() &&
         std::ranges::all_of(outputs, [](const Output& output) { return output.discriminates; });
}

bool Reference::mostly_undetermined() const {
  return std::ranges::any_of(outputs, [](const Output& output) {
    return static_cast<double>(output.undetermined) >
           kMostUndetermined * static_cast<double>(output.self.finite);
  });
}

bool Reference::overflows() const {
  return std::ranges::any_of(outputs, [](const Output& output) { return output.overflows; });
}

Result<CompareStats> CompareWithReference(JudgeKernels& kernels, const Reference::Output& output,
                                          DeviceAddress data, double element_bound,
                                          const std::optional<Poison>& poison) {
  CompareRequest request{data,       output.dtype, output.masked->address(), output.elements,
                         output.key, output.scale};
  request.element_bound = element_bound;
  request.poison = poison;
  request.decisions = output.decision_slots;
  request.reference_dtype = output.stored;
  request.nan_for_infinite = output.nan_for_infinite;
  return kernels.Compare(request);
}

}  // namespace atunner
