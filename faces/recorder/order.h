// Messages between the command line and the library inside a program: an order through the
// environment, and the report of `apply`.
//
//     ATUNNER_RECORD={"capture": "app.capture", "launches_of_kernel": 4, …}
//     ATUNNER_APPLY={"folders": ["best"], "report": "/tmp/report"}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "atunner/capture/applied.h"
#include "atunner/capture/recording.h"
#include "atunner/model/json/json.h"

namespace atunner::recorder {

/// The environment variable that holds RecordOrder as JSON.
inline constexpr const char* kRecordVariable = "ATUNNER_RECORD";

struct RecordOrder {
  std::string capture;  ///< folder that BeginCapture has made
  capture::RecordingLimits limits;
};
Json ToJson(const RecordOrder& order);
Result<RecordOrder> ReadRecordOrder(const std::string& text);

using capture::AppliedLaunch;
using capture::AppliedReport;
using capture::ApplyOrder;
using capture::kApplyVariable;
using capture::ReadAppliedReport;
using capture::ReadApplyOrder;
using capture::Verdict;

}  // namespace atunner::recorder
