// Names the bottleneck of a launch, with evidence. Deterministic: counters against thresholds
// (threshold.def), and where the virtual GPU counted, the time model without each cause.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atunner/evidence/counters.h"
#include "atunner/vgpu/timing/estimate.h"

namespace atunner::evidence {

enum class Bottleneck : uint8_t {
#define ATUNNER_BOTTLENECK(id, name, meaning) id,
#include "atunner/evidence/bottleneck.def"
#undef ATUNNER_BOTTLENECK
  kCount
};
std::string_view Name(Bottleneck bottleneck);
std::string_view MeaningOf(Bottleneck bottleneck);

struct Threshold {
  std::string_view name;
  double value = 0;
  std::string_view unit;
  std::string_view meaning;
  std::string_view source;
};
/// All of threshold.def, in its order.
const std::vector<Threshold>& Thresholds();

/// A cause or a limit that the counters show.
struct Finding {
  Bottleneck bottleneck = Bottleneck::kMemory;
  std::string evidence;  ///< one sentence with figures
  /// Time / time without it, by the time model; nullopt: not counted, or no model of it
  std::optional<double> gain = std::nullopt;
};

/// What is known of a launch.
struct LaunchEvidence {
  CounterSet counters;
  /// The limit that the time model names: "DRAM", "latency", …; "" if nothing was predicted
  std::string limiter;
  /// The launch as the virtual GPU counted it; nullptr for measured counters
  const vgpu::EstimateInput* counted = nullptr;
};

/// The causes that the counters show and the limit they leave; the first one is the bottleneck.
/// Causes of larger gain come first; a cause whose gain is not worthwhile comes after the limit.
/// Never empty.
std::vector<Finding> Classify(const LaunchEvidence& launch);

}  // namespace atunner::evidence
