// Texts of flags as values. Errors name the flag.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "atunner/jobs/requests/requests.h"

namespace atunner::cli {

/// "8,1024,4096", one shape. kInvalidInput for anything else.
Result<std::vector<int64_t>> ParseShape(const std::string& text, const std::string& flag);

/// "key=value" of an operator's attribute, each.
Result<Attributes> ParseAttributes(const std::vector<std::string>& texts);

/// "n=512" or "n=1,512,4096".
Result<std::pair<std::string, std::vector<int64_t>>> ParseDim(const std::string& text);

/// "", "all" or "0,1".
Result<DeviceSelection> ParseDevices(const std::string& text);

Result<DType> ParseDTypeFlag(const std::string& name);
Result<Accuracy> ParseAccuracyFlag(const std::string& name);

/// "graph,fused": stages to show.
Result<std::vector<jobs::Stage>> ParseStages(const std::vector<std::string>& names,
                                             const std::string& flag);

}  // namespace atunner::cli
