// Compile requests and outcomes as JSON, for the cache and for messages to compile workers.
#pragma once

#include "atunner/compile/compiler.h"
#include "atunner/model/json/json.h"

namespace atunner {

Json ToJson(const CompileRequest& request);
/// kInvalidInput naming the missing or mistyped field.
Result<CompileRequest> RequestFromJson(const Json& json);

Json ToJson(const CompileOutcome& outcome);
/// kInvalidInput for an outcome that has neither a module nor an error.
Result<CompileOutcome> OutcomeFromJson(const Json& json);

}  // namespace atunner
