// The order to record what a program launches: a message from the command line to the library
// inside the program.
//
//     ATUNNER_RECORD={"capture": "app.capture", "launches_of_kernel": 4, …}
#pragma once

#include <string>

#include "atunner/capture/recording.h"
#include "atunner/model/json/json.h"

namespace atunner::capture {

/// The environment variable that holds RecordOrder as JSON.
inline constexpr const char* kRecordVariable = "ATUNNER_RECORD";

struct RecordOrder {
  std::string capture;  ///< folder that BeginCapture has made
  RecordingLimits limits;
};
Json ToJson(const RecordOrder& order);
Result<RecordOrder> ReadRecordOrder(const std::string& text);

}  // namespace atunner::capture
