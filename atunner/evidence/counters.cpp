#include "atunner/evidence/counters.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace atunner::evidence {
namespace {

constexpr bool IsCounted(std::string_view formula) { return formula != "kUnknown"; }

constexpr std::array kInfos = {
#define ATUNNER_COUNTER(id, name, unit, meaning, metric, counted) \
  CounterInfo{name, unit, meaning, metric, IsCounted(#counted)},
#include "atunner/evidence/counter.def"
#undef ATUNNER_COUNTER
};
static_assert(kInfos.size() == static_cast<size_t>(Counter::kCount));

std::optional<Counter> Find(std::string_view CounterInfo::* key, std::string_view value) {
  const auto found = std::ranges::find(kInfos, value, key);
  if (value.empty() || found == kInfos.end()) return std::nullopt;
  return static_cast<Counter>(found - kInfos.begin());
}

}  // namespace

const CounterInfo& InfoOf(Counter counter) { return kInfos.at(static_cast<size_t>(counter)); }

std::optional<Counter> CounterOfMetric(std::string_view metric) {
  return Find(&CounterInfo::metric, metric);
}

std::optional<Counter> CounterOfName(std::string_view name) {
  return Find(&CounterInfo::name, name);
}

std::string_view Name(Origin origin) {
  return origin == Origin::kMeasured ? "measured" : "counted";
}

std::optional<double> ValueOf(const CounterSet& counters, Counter counter) {
  const auto found = counters.find(counter);
  if (found == counters.end()) return std::nullopt;
  return found->second.value;
}

}  // namespace atunner::evidence
