// The configuration of `system`: a YAML file whose keys system_key.def lists.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "atunner/base/files.h"
#include "atunner/base/result.h"

namespace atunner::jobs {

enum class SystemObjective : uint8_t { kThroughput, kLatency, kMemory, kWeights };
std::string_view Name(SystemObjective objective);

struct SystemConfig {
  std::string model;  ///< path; relative ones begin at the configuration's folder
  std::string gpus;
  std::string comm_table;  ///< as `model`, or empty
  SystemObjective objective = SystemObjective::kThroughput;
  double throughput_weight = 0, latency_weight = 0, memory_weight = 0;
  double memory_gb = 0;  ///< 0: the default
  double step_ms = 0;    ///< 0: no limit
  int64_t batch = 0;     ///< 0: the default
  int64_t largest_batch = 0;
  double optimizer_bytes = 8;
  std::string program;  ///< as `model`, or empty
  double apply_seconds = 300;
};

struct SystemKey {
  enum Type : uint8_t { kText, kInteger, kNumber };
  std::string_view key;
  Type type;
  bool required;
  std::string_view meaning;
};
std::span<const SystemKey> SystemKeys();

/// kInvalidInput names all keys that are unknown, missing or of the wrong type at once, with their
/// lines.
Result<SystemConfig> ParseSystemConfig(std::string_view yaml);

/// The same for a file; paths in it begin at its folder.
Result<SystemConfig> ReadSystemConfig(const Path& file);

}  // namespace atunner::jobs
