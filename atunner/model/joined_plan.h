// Plans of several kernels as one.
#pragma once

#include <map>
#include <string>

#include "atunner/model/kernel_spec.h"
#include "atunner/model/launch_plan.h"

namespace atunner {

/// How a plan becomes part of another task's.
struct JoinedAs {
  std::string prefix;                               ///< of its kernels' and workspaces' names
  const Dims& dims;                                 ///< of its own task
  const std::map<std::string, std::string>& names;  ///< of its tensors: how the whole calls them
  const KernelSpec& whole;                          ///< a tensor that is none of its arguments lies in a workspace
};

/// Adds a plan's steps behind those of `whole`, with their sizes as numbers.
Status JoinPlan(LaunchPlan plan, const JoinedAs& as, LaunchPlan& whole);

}  // namespace atunner
