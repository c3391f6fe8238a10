// Hazards as a person and a program read them: what `sanitize` and `run` print.
#pragma once

#include <string>

#include "atunner/device/device.h"
#include "atunner/model/json/json.h"
#include "faces/cli/output/source_lines.h"

namespace atunner::cli {

Json HazardJson(const Hazard& hazard, SourceLines& source);
void PrintHazard(const Hazard& hazard, SourceLines& source);

/// "no hazards", "1 hazard", "5 hazards".
std::string HowMany(size_t hazards);

/// How a launch ended, in one phrase. `checked`: on the virtual GPU; a real one looks for no
/// hazards, and does not tell how far a kernel came that it ended.
std::string HazardSummary(const LaunchOutcome& outcome, bool checked);

}  // namespace atunner::cli
