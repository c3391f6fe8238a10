// A report as one HTML file: breakdown, advice, tables, and a timeline to zoom into.
#pragma once

#include <span>
#include <string>

#include "atunner/trace/analysis/analysis.h"
#include "atunner/trace/findings/finding.h"

namespace atunner::trace {

/// The file needs nothing from elsewhere. A million events take about 24 MB. Host threads show at
/// most 24 nested events.
std::string TimelinePage(std::span<const Analysis> analyses, std::span<const Finding> findings);

}  // namespace atunner::trace
