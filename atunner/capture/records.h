// The lines of a capture's `records.jsonl`, as JSON values.
#pragma once

#include <variant>

#include "atunner/capture/capture.h"
#include "atunner/model/json/json.h"

namespace atunner::capture {

inline constexpr int kFormatVersion = 1;

struct CaptureNote {
  std::string text;
};
/// All groups so far; a later record of this kind replaces an earlier one of the same process.
struct GroupsRecord {
  std::vector<LaunchGroup> groups;
};

using Record = std::variant<CaptureHead, CapturedModule, CapturedKernel, CapturedLaunch,
                            GroupsRecord, CaptureNote, CaptureEnding>;

Json ConfigurationJson(const LaunchConfiguration& configuration);
/// Throws Json::exception for a missing or mistyped field.
LaunchConfiguration ConfigurationOf(const Json& json);

Json ToJson(const Record& record);
/// kInvalidInput names the missing or mistyped field; kUnsupported a newer format.
Result<Record> RecordOf(const Json& json, const std::string& where);

}  // namespace atunner::capture
