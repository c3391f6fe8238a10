// Arguments of tools as requests, and values of jobs as bounded JSON.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "atunner/jobs/kernels/examine.h"
#include "atunner/mcp/workbench/workbench.h"

namespace atunner::mcp {

/// A kernel that a call names: the problem's own schedule, or one that the client wrote.
struct NamedKernel {
  std::shared_ptr<const Problem> problem;
  std::shared_ptr<const ScheduleTemplate> schedule;
  std::string configuration;  ///< "tile=16,unroll=4"; parameters left out keep their defaults
  bool proposed = false;      ///< the client wrote it
};

/// The kernel of `arguments`: the keys problem, source, launch, workspaces, parameters,
/// constraints, configuration. Errors name the place in the arguments.
Result<NamedKernel> KernelOf(const Json& arguments, Workbench& workbench);

/// A launch plan in the form in which clients write one.
Json LaunchJson(const LaunchPlan& plan);

/// The task or the file of `describe_problem`. `gpu` and other keys are left alone.
Result<jobs::ProblemRequest> ProblemOf(const Json& arguments, Workbench& workbench);

}  // namespace atunner::mcp
