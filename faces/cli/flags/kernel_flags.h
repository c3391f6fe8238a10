// The flags of verbs that run one kernel on the virtual GPU.
#pragma once

#include <string>

#include "atunner/jobs/requests/requests.h"
#include "faces/cli/flags/task_flags.h"

namespace atunner::cli {

struct KernelFlags {
  std::string file;    ///< .cu, .toml, T1 .json, or an artifact's folder; empty: the operator
  std::string kernel;  ///< which kernel of a .cu
  TaskFlags task;      ///< an operator by name
  std::string configuration;
  std::string target = "auto";
  double timeout_seconds = 60;

  Result<jobs::KernelRequest> Request() const;
};

void AddKernel(CLI::App* verb, KernelFlags& flags);

}  // namespace atunner::cli
