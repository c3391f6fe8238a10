#include "atunner/trace/findings/measures.h"

#include <fmt/format.h>

#include <algorithm>

namespace atunner::trace {

double WindowOf(const FindingInput& input) {
  const int64_t window = input.analysis.Total().window;
  return static_cast<double>(std::max<int64_t>(1, window));
}

double IdleShare(const FindingInput& input, IdleCause cause) {
  return static_cast<double>(input.analysis.Total().IdleFor(cause)) / WindowOf(input);
}

double KernelShare(const FindingInput& input, const std::function<bool(const KernelRow&)>& fits) {
  double total = 0;
  for (const KernelRow& row : input.analysis.tables.kernels)
    total += fits(row) ? static_cast<double>(row.total) : 0;
  return total / WindowOf(input);
}

double CopyShare(const FindingInput& input, const std::function<bool(const CopyRow&)>& fits) {
  double total = 0;
  for (const CopyRow& row : input.analysis.tables.copies)
    total += fits(row) ? static_cast<double>(row.total) : 0;
  return total / WindowOf(input);
}

const KernelRow* LargestKernel(const FindingInput& input,
                               const std::function<bool(const KernelRow&)>& fits) {
  const auto& rows = input.analysis.tables.kernels;
  const auto found = std::ranges::find_if(rows, fits);
  return found == rows.end() ? nullptr : &*found;
}

CallRow Calls(const FindingInput& input, const std::function<bool(const CallRow&)>& fits) {
  CallRow sum;
  for (const CallRow& row : input.analysis.tables.calls) {
    if (!fits(row)) continue;
    sum.count += row.count;
    sum.total += row.total;
  }
  return sum;
}

std::string_view Text(const FindingInput& input, uint32_t string_id) {
  return input.analysis.timeline->strings[string_id];
}

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string Duration(double nanoseconds) {
  if (nanoseconds < 1e3) return fmt::format("{:.0f} ns", nanoseconds);
  if (nanoseconds < 1e6) return fmt::format("{:.2f} us", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return fmt::format("{:.2f} ms", nanoseconds / 1e6);
  return fmt::format("{:.2f} s", nanoseconds / 1e9);
}

std::string ShortName(std::string_view name) {
  constexpr size_t kLongest = 72;
  if (name.size() <= kLongest) return std::string(name);
  return fmt::format("{}...", name.substr(0, kLongest - 3));
}

}  // namespace atunner::trace
