// Small values in JSON files that are read with exceptions: each throws std::exception where the
// JSON has another form.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "atunner/base/digest.h"
#include "atunner/model/json/json.h"
#include "atunner/model/value/value.h"

namespace atunner {

/// The value of a parameter or an attribute: a boolean, a number or text. JSON has no infinity and
/// no NaN; ToJson of configurations writes their names.
Json JsonOfValue(const Value& value);
Value ValueFrom(const Json& json);

/// 32 hexadecimal digits in lower case.
Digest DigestFrom(const std::string& hex);

}  // namespace atunner
