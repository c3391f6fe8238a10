// One vocabulary for what a launch did, whoever counted it: counter.def. A value says where it
// comes from: measured by CUPTI or Nsight Compute on a GPU, or counted by the virtual GPU.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace atunner::evidence {

enum class Counter : uint8_t {
#define ATUNNER_COUNTER(id, name, unit, meaning, set, metric, counted) id,
#include "atunner/evidence/counter.def"
#undef ATUNNER_COUNTER
  kCount
};

/// When a counter is read on a GPU.
enum class ReadSet : uint8_t {
  kLaunch,  ///< not at all: it follows from the launch
  kFirst,   ///< of every kernel of interest; all of them fit one pass
  kRest,    ///< where further passes are worth their time
};

struct CounterInfo {
  std::string_view name;
  std::string_view unit;
  std::string_view meaning;
  ReadSet set = ReadSet::kRest;
  std::string_view metric;  ///< of Nsight Compute and CUPTI, metric_expression.h; "" = none
  bool counted = false;     ///< the virtual GPU gives it
};
const CounterInfo& InfoOf(Counter counter);
std::optional<Counter> CounterOfName(std::string_view name);

enum class Origin : uint8_t { kMeasured, kCounted };
std::string_view Name(Origin origin);  // "measured", "counted"

struct CounterValue {
  double value = 0;
  Origin origin = Origin::kCounted;
};

/// The counters of one launch; a counter that no source gave is missing.
using CounterSet = std::map<Counter, CounterValue>;

/// The value of a counter; nullopt if it is missing.
std::optional<double> ValueOf(const CounterSet& counters, Counter counter);

}  // namespace atunner::evidence
