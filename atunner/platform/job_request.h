// A job as JSON describes it (faces/serve/openapi.yaml, JobRequest), checked, and the request to
// `jobs` that it becomes.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "atunner/base/files.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/model/json/json.h"

namespace atunner::platform {

enum class JobKind : uint8_t { kOperator, kSource, kGraph };

struct JobRequest {
  JobKind kind = JobKind::kOperator;
  std::string name;        ///< what lists call it; made of the rest if the user gave none
  jobs::TaskRequest task;  ///< kOperator and kGraph; its graph is empty when it comes by upload
  std::string upload;      ///< kSource and kGraph: id of the upload
  std::string kernel;      ///< kSource: which kernel of the file; empty: the only one
  jobs::TuningOptions tuning;
  int priority = 0;
  std::map<std::string, std::string> labels;  ///< a worker must have all of them
};

/// One faulty field. `field` is a path into the JSON: "shapes[0]".
struct FieldProblem {
  std::string field;
  std::string detail;
  std::string hint;
};

/// The checked request, or everything that is wrong with it at once. Operators, shapes, attributes,
/// graphs in text form and names of GPUs are looked up; an upload is not opened.
std::expected<JobRequest, std::vector<FieldProblem>> ParseJobRequest(const Json& json);

/// An error about `request.shapes[0]` is one about the field `shapes[0]`.
FieldProblem ProblemOf(const Error& error);

}  // namespace atunner::platform
