// A timeline's report as text for the terminal.
#pragma once

#include <string>

#include "atunner/trace/timeline_report.h"
#include "atunner/trace/trace_comparison.h"

namespace atunner::cli {

/// Breakdown of each GPU, steps, kernels, operators, copies, gaps, critical path, ranks and advice.
std::string RenderTimeline(const trace::TimelineReport& report, size_t rows);

std::string RenderComparison(const trace::TraceComparison& comparison);

}  // namespace atunner::cli
