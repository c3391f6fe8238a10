// Two traces of the same program, before and after a change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/model/json/json.h"
#include "atunner/trace/timeline_report.h"

namespace atunner::trace {

enum class TraceVerdict : uint8_t { kFaster, kSlower, kEqual };
std::string_view Name(TraceVerdict verdict);

/// A part of the time of one step, or of the window if no iterations were found. Nanoseconds.
struct TimeChange {
  std::string name;
  double before = 0, after = 0;
};

struct TraceComparison {
  TraceVerdict verdict = TraceVerdict::kEqual;
  std::string compared;             ///< "median step" or "whole window"
  TimeChange time;                  ///< of what was compared
  double threshold = 0;             ///< relative change below which the verdict is kEqual
  std::vector<TimeChange> parts;    ///< compute, exposed communication, idle by cause, …
  std::vector<TimeChange> kernels;  ///< largest change first, at most 20
};

/// Steps are compared if both traces have three or more, else windows. The threshold is 2 %, or
/// three times the steps' median absolute deviations if that is more. Of folders the slowest ranks
/// are compared.
TraceComparison Compare(const TimelineReport& before, const TimelineReport& after);

Json ToJson(const TraceComparison& comparison);

}  // namespace atunner::trace
