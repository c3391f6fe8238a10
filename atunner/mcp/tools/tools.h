// The table of tools. Each file adds those of one subject.
#pragma once

#include <vector>

#include "atunner/mcp/protocol/offer.h"
#include "atunner/mcp/workbench/workbench.h"

namespace atunner::mcp {

/// gpu_info, describe_problem, list_templates
void AddProblemTools(Workbench& workbench, std::vector<Tool>& tools);
/// compile, verify, sanitize, run, benchmark, compare
void AddKernelTools(Workbench& workbench, std::vector<Tool>& tools);
/// autotune, job_status, job_cancel, submit, history
void AddTuningTools(Workbench& workbench, std::vector<Tool>& tools);

/// A schema of an object that takes these properties and no others. `properties` is JSON text of an
/// object; names of those that must be there follow.
Json ObjectSchema(const char* properties, const std::vector<std::string>& required);
/// The properties of a kernel (KernelOf) and, in `more`, others.
Json KernelSchema(const char* more = "{}");

}  // namespace atunner::mcp
