// Reads what `ncu --csv` prints. It comes in three shapes, told apart by the header:
//
//   details   a row per metric and launch: … "Section Name","Metric Name","Metric Unit",
//             "Metric Value", newer ones with "Rule Name", …; older ones with "Kernel Time"
//   summary   a row per metric and kernel (--print-summary per-kernel): … "Minimum","Maximum",
//             "Average"
//   raw       a row per launch (--page raw): a column per metric, a row of units under the header
//
// Lines of the profiled program and of ncu itself ("==PROF== …") may stand before the header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/evidence/counters.h"

namespace atunner::evidence {

/// What one of ncu's own rules says.
struct NcuRule {
  std::string name;
  std::string text;
  double speedup_percent = 0;  ///< its estimate; 0 = none
};

struct MeasuredLaunch {
  std::string kernel;  ///< as ncu prints it
  CounterSet counters;
  std::vector<NcuRule> rules;
};

/// Launches, or kernels of a summary, in the order of the text. Metrics that counter.def does not
/// name are left out. kInvalidInput for a text without such a header, or for a quote that is not
/// closed.
Result<std::vector<MeasuredLaunch>> ParseNcuCsv(std::string_view text);

}  // namespace atunner::evidence
