// JSON that PyTorch wrote. Its objects have up to a million members, for which the members of
// atunner's own JSON, kept in order, are too slow: each insertion looks at all members before.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "atunner/base/result.h"

namespace atunner::importers {

using ForeignJson = nlohmann::json;

/// kInvalidInput for text that is no JSON, or that is nested more than 256 levels deep.
Result<ForeignJson> ParseForeignJson(std::string_view text, const std::string& where);

/// A member of an object; null where the JSON is no object or lacks it.
const ForeignJson& Member(const ForeignJson& json, const char* name);

}  // namespace atunner::importers
