// Values of jobs as bounded JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "atunner/device/device.h"
#include "atunner/jobs/kernels/examine.h"
#include "atunner/mcp/workbench/texts.h"

namespace atunner::mcp {

/// {"verdict", "passed", "reason", "checks", "worst_error", "failed": […]}
Json VerdictJson(const Verdict& verdict);

/// The verdict, the time if there is one, and what limits it.
Json ExaminationJson(const jobs::Examination& found);

/// At most `most` hazards, each with its place in `source`; {"found", "hazards"}.
Json HazardsJson(const std::vector<Hazard>& hazards, const std::string& source, size_t most);

/// {"entry", "registers", …} for each kernel.
Json ResourcesJson(const std::vector<KernelResources>& kernels);

}  // namespace atunner::mcp
