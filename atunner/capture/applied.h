// The order to replace a program's launches, and the report of what became of them: messages
// between the command line and the libraries inside a program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/capture/capture.h"
#include "atunner/model/json/json.h"

namespace atunner::capture {

/// The environment variable that holds ApplyOrder as JSON.
inline constexpr const char* kApplyVariable = "ATUNNER_APPLY";

struct ApplyOrder {
  std::vector<std::string> folders;  ///< each with a replacement.json
  std::string report;                ///< file to which each process appends; "" = none
  /// Memory that the first launch may reach, so that the comparison can copy it.
  uint64_t compared_bytes = uint64_t{4} << 30;
};
Json ToJson(const ApplyOrder& order);
Result<ApplyOrder> ReadApplyOrder(const std::string& text);

/// Result of the first launch of a tuned kernel, compared with the original's.
enum class Verdict {
  kNotCompared,  ///< not launched, or `reason` says why; the original is used
  kEqual,
  kWithinTolerance,
  kDifferent,  ///< the original is used
};
std::string_view Name(Verdict verdict);

/// What became of one replaced launch configuration of a kernel.
struct AppliedLaunch {
  std::string kernel;  ///< mangled
  capture::LaunchConfiguration configuration;
  uint64_t launches = 0;  ///< of this configuration by the program
  uint64_t replaced = 0;  ///< of these
  /// Launches of graphs that hold the original.
  uint64_t in_graphs = 0;
  Verdict verdict = Verdict::kNotCompared;
  double error = 0;    ///< largest difference, relative to the largest result
  std::string reason;  ///< why the tuned kernel is not used
  bool operator==(const AppliedLaunch&) const = default;
};
/// One line of the report.
struct AppliedReport {
  std::vector<AppliedLaunch> launches;
  std::vector<std::string> errors;  ///< e.g. a folder that cannot be read
};
Json ToJson(const AppliedReport& report);
/// Appends the report as a line to the order's file, if it names one.
void AppendReport(const ApplyOrder& order, const AppliedReport& report);
/// The last line of each process, merged: launches are added, the worst verdict counts.
Result<AppliedReport> ReadAppliedReport(const std::string& text);

}  // namespace atunner::capture
