// A problem that kernels are written for: an operator or a graph at one size, or a user's kernel.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "atunner/base/files.h"
#include "atunner/jobs/requests/events.h"
#include "atunner/jobs/requests/requests.h"
#include "atunner/model/schedule/schedule_template.h"

namespace atunner::jobs {

struct ProblemRequest {
  std::optional<TaskRequest> task;  ///< an operator or a graph; else `file`
  Path file;                        ///< .cu, .toml or T1 .json
  std::string kernel;               ///< which kernel of a .cu; empty: the only one
};

/// The problem's own schedule: that of the first family that computes the task, or the user's
/// kernel with its parameters. Its spec is the task: tolerance, sizes and oracle of all kernels
/// that are written for the problem. Notes about what was inferred go to `events`. kInvalidInput
/// for a task or a file that is wrong, kUnsupported where no family computes it on the target.
Result<std::unique_ptr<ScheduleTemplate>> OpenProblem(const ProblemRequest& request,
                                                      const Target& target,
                                                      const EventSink& events);

}  // namespace atunner::jobs
