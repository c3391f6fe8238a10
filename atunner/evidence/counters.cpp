#include "atunner/evidence/counters.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace atunner::evidence {
namespace {

constexpr bool IsCounted(std::string_view formula) { return formula != "kUnknown"; }

constexpr std::array kInfos = {
#define ATUNNER_COUNTER(id, name, unit, meaning, set, metric, counted) \
  CounterInfo{name, unit, meaning, ReadSet::set, metric, IsCounted(#counted)},
#include "atunner/evidence/counter.def"
#undef ATUNNER_COUNTER
};
static_assert(kInfos.size() == static_cast<size_t>(Counter::kCount));

}  // namespace

const CounterInfo& InfoOf(Counter counter) { return kInfos.at(static_cast<size_t>(counter)); }

std::optional<Counter> CounterOfName(std::string_view name) {
  const auto found = std::ranges::find(kInfos, name, &CounterInfo::name);
  if (found == kInfos.end()) return std::nullopt;
  return static_cast<Counter>(found - kInfos.begin());
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
