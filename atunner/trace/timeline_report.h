// Opens traces, analyses them and gathers advice: what `atunner timeline` shows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/base/result.h"
#include "atunner/model/json/json.h"
#include "atunner/trace/analysis/analysis.h"
#include "atunner/trace/analysis/ranks.h"
#include "atunner/trace/findings/finding.h"
#include "atunner/trace/timeline/timeline.h"

namespace atunner::trace {

/// One trace or, for a folder, one trace for each rank.
struct TimelineReport {
  std::vector<std::unique_ptr<Timeline>> timelines;
  std::vector<Analysis> analyses;  ///< of timelines
  RankComparison ranks;            ///< empty for a single trace
  /// For a folder each rule appears once, with the rank on which it gains most.
  std::vector<Finding> findings;
};

/// `path` is a file or a folder with one trace for each rank. Errors name the file.
Result<TimelineReport> ReportTimeline(const Path& path);

/// The whole report; times in nanoseconds.
Json ToJson(const TimelineReport& report);

}  // namespace atunner::trace
