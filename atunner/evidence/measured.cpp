#include "atunner/evidence/measured.h"

#include <algorithm>

namespace atunner::evidence {
namespace {

/// All counters, in the order of counter.def.
std::vector<Counter> AllCounters() {
  std::vector<Counter> all;
  for (size_t i = 0; i < static_cast<size_t>(Counter::kCount); ++i)
    all.push_back(static_cast<Counter>(i));
  return all;
}

}  // namespace

std::vector<std::string> MetricsOf(ReadSet last) {
  std::vector<std::string> metrics;
  for (const Counter counter : AllCounters()) {
    const CounterInfo& info = InfoOf(counter);
    if (info.set == ReadSet::kLaunch || info.set > last) continue;
    for (const std::string& name : MetricsIn(info.metric)) {
      if (std::ranges::find(metrics, name) == metrics.end()) metrics.push_back(name);
    }
  }
  return metrics;
}

CounterSet MeasuredCounters(const Metrics& metrics) {
  CounterSet counters;
  for (const Counter counter : AllCounters()) {
    if (const auto value = Evaluate(InfoOf(counter).metric, metrics))
      counters[counter] = {*value, Origin::kMeasured};
  }
  return counters;
}

CounterSet Merged(const CounterSet& measured, const CounterSet& counted) {
  CounterSet all = measured;
  all.insert(counted.begin(), counted.end());  // keeps what is there
  return all;
}

}  // namespace atunner::evidence
