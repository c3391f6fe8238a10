// `system --apply`: the changes of a plan, tried one after the other on the GPUs of this machine.
// Each is measured in turns with what was kept so far, and kept if it is faster.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/jobs/system/system_config.h"
#include "atunner/jobs/system/system_run.h"
#include "atunner/model/json/json.h"

namespace atunner::jobs {

/// One change, measured beside what was kept before it.
struct MeasuredChange {
  std::string name;
  bool kept = false;
  double before = 0, after = 0;  ///< samples a second on all GPUs
  double share = 0;              ///< of the whole gain (its logarithm), if it was kept
  std::string failure;           ///< why it was not measured, or empty
};

struct SystemMeasurement {
  std::vector<MeasuredChange> changes;  ///< in the order in which they were tried
  std::string settings;                 ///< what was kept, as JSON
  /// Samples a second at the end, in turns; 0 if it was not measured.
  double eager = 0;     ///< eager mode and DistributedDataParallel with its defaults
  double compiled = 0;  ///< torch.compile and DistributedDataParallel with its defaults
  double best = 0;      ///< what was kept
};

/// What is tried, as the job of atunner/_measure_parallel.py. kInvalidInput names missing keys.
Result<Json> MeasureJob(const SystemConfig& config, const SystemResult& plan,
                        const std::string& out);
/// Reads what the job wrote for `gpus` GPUs.
Result<SystemMeasurement> ReadMeasurement(const Json& written, int gpus);

/// Runs the user's Python (importers::FindPython) on the program that the configuration names.
/// kUnavailable without Python, PyTorch or enough GPUs; the message ends with the log's last lines.
Result<SystemMeasurement> MeasureSystem(const SystemConfig& config, const SystemResult& plan);

std::string TextOf(const SystemMeasurement& measurement);
Json ToJson(const SystemMeasurement& measurement);

}  // namespace atunner::jobs
