// The subset of JSON Schema in which tools state their arguments, and its check: the schema that a
// client reads is the one that decides.
#pragma once

#include <string_view>

#include "atunner/model/json/json.h"

namespace atunner::mcp {

/// The keywords type (a name or a list of names), properties, required, additionalProperties (false
/// or a schema), items, enum, minItems, maxItems, maxLength, minimum, maximum and anyOf.
/// kInvalidInput names everything that is wrong, each with its place: "arguments.launch[0].grid".
Status CheckSchema(const Json& schema, const Json& value, std::string_view place = "arguments");

}  // namespace atunner::mcp
