// CUPTI, opened at run time: the functions that reading a GPU's counters takes, and its errors in
// words.
#pragma once

#include <string>
#include <vector>

#include "atunner/base/dylib.h"
#include "atunner/base/result.h"
#include "atunner/device/cupti_abi.h"

namespace atunner {

struct Cupti {
  // Knowledge of metrics; needs no GPU.
  cupti::ResultCode (*chips)(cupti::SupportedChips*) = nullptr;
  cupti::ResultCode (*host_open)(cupti::HostInitialize*) = nullptr;
  cupti::ResultCode (*host_close)(cupti::HostDeinitialize*) = nullptr;
  cupti::ResultCode (*add_metrics)(cupti::AddMetrics*) = nullptr;
  cupti::ResultCode (*config_size)(cupti::ConfigSize*) = nullptr;
  cupti::ResultCode (*config_image)(cupti::ConfigImage*) = nullptr;
  cupti::ResultCode (*passes)(cupti::PassCount*) = nullptr;
  cupti::ResultCode (*evaluate)(cupti::EvaluateValues*) = nullptr;
  // Reading of the counters of a GPU.
  cupti::ResultCode (*start_up)(cupti::Empty*) = nullptr;
  cupti::ResultCode (*chip_name)(cupti::ChipName*) = nullptr;
  cupti::ResultCode (*enable)(cupti::RangeEnable*) = nullptr;
  cupti::ResultCode (*disable)(cupti::RangeObject*) = nullptr;
  cupti::ResultCode (*start)(cupti::RangeObject*) = nullptr;
  cupti::ResultCode (*stop)(cupti::RangeStop*) = nullptr;
  cupti::ResultCode (*configure)(cupti::RangeConfig*) = nullptr;
  cupti::ResultCode (*data_size)(cupti::DataSize*) = nullptr;
  cupti::ResultCode (*data_initialize)(cupti::DataInitialize*) = nullptr;
  cupti::ResultCode (*decode)(cupti::DecodeData*) = nullptr;
  cupti::ResultCode (*data_info)(cupti::DataInfo*) = nullptr;
  cupti::ResultCode (*text)(cupti::ResultCode, const char**) = nullptr;
  std::string path;  ///< of the library

  /// An Error of kUnavailable that says why `action` failed and what helps; nothing for success.
  Status Check(cupti::ResultCode code, const char* action) const;
};

/// The library of this machine, opened once. kUnavailable where there is none, or one before CUDA
/// 12.6, which has no range profiler.
const Result<Cupti>& SharedCupti();

/// The chips whose metrics the library knows: "GA100", "GH100", …
Result<std::vector<std::string>> ChipsOfCupti();

}  // namespace atunner
