// Resources: operators, reports and best kernels of runs, long texts of earlier answers.
#pragma once

#include <string>
#include <vector>

#include "atunner/mcp/protocol/offer.h"
#include "atunner/mcp/workbench/workbench.h"

namespace atunner::mcp {

/// Names of operators and of GPUs, for the arguments that take them (Offer::values).
std::vector<std::string> KnownValues(const std::string& subject, const std::string& argument);

class WorkbenchResources : public Resources {
 public:
  explicit WorkbenchResources(Workbench& workbench) : workbench_(workbench) {}
  /// The list of operators, and reports of the newest runs.
  Result<std::vector<ResourceInfo>> List() override;
  std::vector<ResourceInfo> Templates() override;
  Result<ResourceText> Read(const std::string& uri) override;

 private:
  Result<ResourceText> ReadRun(const std::string& run, std::string_view what);

  Workbench& workbench_;
};

}  // namespace atunner::mcp
