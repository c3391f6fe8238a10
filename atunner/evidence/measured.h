// Counters of a GPU, from the metrics that CUPTI or Nsight Compute gave.
#pragma once

#include <string>
#include <vector>

#include "atunner/evidence/counters.h"
#include "atunner/evidence/metric_expression.h"

namespace atunner::evidence {

/// The metrics that `last` and the sets before it take, each once.
std::vector<std::string> MetricsOf(ReadSet last);

/// The counters whose metrics are among `metrics`; their origin is kMeasured.
CounterSet MeasuredCounters(const Metrics& metrics);

/// The measured counters, and the counted ones of which nothing was measured.
CounterSet Merged(const CounterSet& measured, const CounterSet& counted);

}  // namespace atunner::evidence
