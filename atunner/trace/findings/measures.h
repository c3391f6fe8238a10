// Small sums that several rules need.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "atunner/trace/findings/finding.h"

namespace atunner::trace {

/// Window of all devices together, at least 1 ns.
double WindowOf(const FindingInput& input);
/// Share of the window that the devices were idle for a cause.
double IdleShare(const FindingInput& input, IdleCause cause);
/// Time of work that fits, as share of the window. Durations are added, so overlapping kernels
/// count twice: a bound of the gain, not a time on the clock.
double KernelShare(const FindingInput& input, const std::function<bool(const KernelRow&)>& fits);
double CopyShare(const FindingInput& input, const std::function<bool(const CopyRow&)>& fits);
/// The row with the most time that fits, or nullptr.
const KernelRow* LargestKernel(const FindingInput& input,
                               const std::function<bool(const KernelRow&)>& fits);
/// Calls and time of CUDA calls that fit.
CallRow Calls(const FindingInput& input, const std::function<bool(const CallRow&)>& fits);

std::string_view Text(const FindingInput& input, uint32_t string_id);
/// "12.3 %" of a share.
std::string Percent(double share);
/// "1.25 ms" of nanoseconds.
std::string Duration(double nanoseconds);
/// A kernel's name, shortened for sentences.
std::string ShortName(std::string_view name);

}  // namespace atunner::trace
