// Expressions over the metrics of CUPTI and Nsight Compute, as counter.def writes them:
//
//   expression   alternative [ "|" alternative … ]   the first whose metrics are all known
//   alternative  sum [ "/" sum ]
//   sum          metric [ "+" metric … ]
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atunner::evidence {

/// Values by the name of the metric: "dram__bytes.sum".
using Metrics = std::map<std::string, double, std::less<>>;

/// The metrics of the first alternative, which every source has.
std::vector<std::string> MetricsIn(std::string_view expression);

/// nullopt where no alternative's metrics are all known, and for a ratio to zero.
std::optional<double> Evaluate(std::string_view expression, const Metrics& metrics);

}  // namespace atunner::evidence
