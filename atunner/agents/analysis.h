// What is known of a task before and between the rounds: its work, the device's limits, and the one
// bottleneck of a kernel.
#pragma once

#include <optional>
#include <string>

#include "atunner/model/json/json.h"
#include "atunner/model/kernel/kernel_spec.h"
#include "atunner/model/trial/trial.h"
#include "atunner/model/value/device_profile.h"

namespace atunner::agents {

/// The task's work at its size.
struct OperatorFacts {
  double flops = 0;
  double bytes = 0;      ///< least traffic: every input read once, every output written once
  double intensity = 0;  ///< FLOP per byte
  std::string dtype;     ///< of the arithmetic
  std::string summary;   ///< one sentence
};

/// The device's limits for this task.
struct HardwareFacts {
  double memory_ns = 0;      ///< the least traffic at the peak bandwidth
  double arithmetic_ns = 0;  ///< the operations at the peak rate
  double floor_ns = 0;       ///< PhysicalFloorNs of the task
  double ridge = 0;          ///< FLOP per byte above which arithmetic decides
  std::string bound;         ///< "memory" or "arithmetic"
  std::string summary;
};

/// Why a kernel takes its time.
struct PerformanceFacts {
  std::string bottleneck;     ///< one of knowledge::Bottlenecks()
  std::string evidence;       ///< one sentence: the figures that say so
  double share_of_floor = 0;  ///< floor over time; 1: no kernel can be faster
};

/// The arithmetic intensity and the rest of the operator's facts. Errors of the spec's expressions.
Result<OperatorFacts> AnalyseOperator(const KernelSpec& spec);
HardwareFacts AnalyseHardware(const KernelSpec& spec, const OperatorFacts& facts,
                              const DeviceProfile& profile);

/// From what is known of a judged kernel to its bottleneck.
class PerformanceAnalyst {
 public:
  virtual ~PerformanceAnalyst() = default;
  virtual PerformanceFacts Analyse(const Trial& trial, const HardwareFacts& hardware) const = 0;
};

/// Uses what every trial has: resources of the compiler, and on the virtual GPU the limits that its
/// time model found. A measured trial without counters is judged by the roofline alone.
class TrialAnalyst : public PerformanceAnalyst {
 public:
  PerformanceFacts Analyse(const Trial& trial, const HardwareFacts& hardware) const override;
};

Json ToJson(const OperatorFacts& facts);
Json ToJson(const HardwareFacts& facts);
Json ToJson(const PerformanceFacts& facts);
HardwareFacts HardwareFromJson(const Json& json);
PerformanceFacts PerformanceFromJson(const Json& json);

}  // namespace atunner::agents
