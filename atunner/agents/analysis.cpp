#include "atunner/agents/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "atunner/measure/harness.h"

namespace atunner::agents {
namespace {

/// Occupancy below which waits are put down to too few warps.
constexpr double kLowOccupancy = 0.25;

/// The time model's names of limits (vgpu/timing/estimate.cpp), and the rules' names for them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kLimiters = {{
    {"DRAM", "memory"},
    {"L2 port", "l2"},
    {"L2", "l2"},
    {"tensor cores", "tensor"},
    {"shared memory", "shared"},
    {"other blocks' shared memory", "shared"},
    {"special functions", "special"},
    {"arithmetic", "arithmetic"},
    {"float64", "arithmetic"},
    {"instruction issue", "issue"},
    {"first instructions", "fetch"},
    {"block launches", "launch"},
    {"launch", "launch"},
    {"latency", "latency"},
}};

std::string BottleneckOf(const Estimate& estimate) {
  for (const auto& [prefix, bottleneck] : kLimiters) {
    if (!estimate.limiter.starts_with(prefix)) continue;
    const bool few_warps = bottleneck == "latency" && estimate.occupancy > 0 &&
                           estimate.occupancy < kLowOccupancy;
    return few_warps ? "occupancy" : std::string(bottleneck);
  }
  return "latency";
}

uint32_t SpilledBytes(const Trial& trial) {
  uint32_t bytes = 0;
  for (const KernelResources& kernel : trial.resources)
    bytes += kernel.spill_load_bytes + kernel.spill_store_bytes;
  return bytes;
}

std::string EvidenceOf(const Estimate& estimate) {
  return fmt::format(
      "the time model's limit is {}, at {:.0f} % occupancy and {:.3g} MB of DRAM "
      "traffic",
      estimate.limiter, 100 * estimate.occupancy, estimate.dram_bytes / 1e6);
}

}  // namespace

Result<OperatorFacts> AnalyseOperator(const KernelSpec& spec) {
  OperatorFacts facts;
  ATUNNER_TRY(facts.flops, FlopCount(spec, spec.dims));
  ATUNNER_TRY(facts.bytes, MinimumBytes(spec, spec.dims));
  facts.intensity = facts.bytes > 0 ? facts.flops / facts.bytes : 0;
  facts.dtype = std::string(Name(spec.compute_dtype));
  facts.summary = fmt::format(
      "{} at {}: {:.3g} MFLOP in {}, at least {:.3g} MB of traffic, {:.3g} FLOP per byte",
      spec.name, ToString(spec.dims), facts.flops / 1e6, facts.dtype, facts.bytes / 1e6,
      facts.intensity);
  return facts;
}

HardwareFacts AnalyseHardware(const KernelSpec& spec, const OperatorFacts& facts,
                              const DeviceProfile& profile) {
  HardwareFacts hardware;
  const double rate = profile.PeakFlops(spec.compute_dtype, spec.tensor_cores);
  hardware.memory_ns = profile.dram_gbps > 0 ? facts.bytes / profile.dram_gbps : 0;
  hardware.arithmetic_ns = rate > 0 ? facts.flops / rate * 1e9 : 0;
  hardware.floor_ns = PhysicalFloorNs(spec, profile);
  hardware.ridge = profile.dram_gbps > 0 ? rate / (profile.dram_gbps * 1e9) : 0;
  hardware.bound = hardware.memory_ns >= hardware.arithmetic_ns ? "memory" : "arithmetic";
  hardware.summary = fmt::format(
      "{}: {:.3g} us for the traffic at {:.4g} GB/s, {:.3g} us for the arithmetic at {:.3g} "
      "TFLOP/s; {} decides, and no kernel takes less than {:.3g} us",
      profile.name, hardware.memory_ns / 1e3, profile.dram_gbps, hardware.arithmetic_ns / 1e3,
      rate / 1e12, hardware.bound, hardware.floor_ns / 1e3);
  return hardware;
}

PerformanceFacts TrialAnalyst::Analyse(const Trial& trial, const HardwareFacts& hardware) const {
  PerformanceFacts facts;
  const double ns = trial.ObjectiveNs().value_or(0);
  facts.share_of_floor = ns > 0 ? hardware.floor_ns / ns : 0;
  if (const uint32_t spilled = SpilledBytes(trial); spilled > 0) {
    facts.bottleneck = "registers";
    facts.evidence = fmt::format("{} bytes of each thread are spilt", spilled);
  } else if (trial.estimate) {
    facts.bottleneck = BottleneckOf(*trial.estimate);
    facts.evidence = EvidenceOf(*trial.estimate);
  } else {
    facts.bottleneck = hardware.bound;
    facts.evidence = "by the roofline; the trial has no counters";
  }
  return facts;
}

Json ToJson(const OperatorFacts& facts) {
  return {{"flops", facts.flops},
          {"bytes", facts.bytes},
          {"intensity", facts.intensity},
          {"dtype", facts.dtype},
          {"summary", facts.summary}};
}

Json ToJson(const HardwareFacts& facts) {
  return {{"memory_ns", facts.memory_ns}, {"arithmetic_ns", facts.arithmetic_ns},
          {"floor_ns", facts.floor_ns},   {"ridge", facts.ridge},
          {"bound", facts.bound},         {"summary", facts.summary}};
}

HardwareFacts HardwareFromJson(const Json& json) {
  HardwareFacts facts;
  facts.memory_ns = json.value("memory_ns", 0.0);
  facts.arithmetic_ns = json.value("arithmetic_ns", 0.0);
  facts.floor_ns = json.value("floor_ns", 0.0);
  facts.ridge = json.value("ridge", 0.0);
  facts.bound = json.value("bound", "memory");
  facts.summary = json.value("summary", "");
  return facts;
}

Json ToJson(const PerformanceFacts& facts) {
  return {{"bottleneck", facts.bottleneck},
          {"evidence", facts.evidence},
          {"share_of_floor", facts.share_of_floor}};
}

PerformanceFacts PerformanceFromJson(const Json& json) {
  PerformanceFacts facts;
  facts.bottleneck = json.value("bottleneck", "");
  facts.evidence = json.value("evidence", "");
  facts.share_of_floor = json.value("share_of_floor", 0.0);
  return facts;
}

}  // namespace atunner::agents
