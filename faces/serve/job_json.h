// A job of the queue as the API shows it (openapi.yaml, Job).
#pragma once

#include "atunner/model/json/json.h"
#include "faces/serve/serve_context.h"

namespace atunner::serve {

Json JobJson(const queue::Job& job, const ServeContext& context);

/// The job's JSON, or an object with its id alone if it cannot be read.
std::string JobText(const std::string& job, ServeContext& context);

}  // namespace atunner::serve
