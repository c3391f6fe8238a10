// Hazards as a person and a program read them: what `sanitize` and `run` print.
#pragma once

#include <vector>

#include "faces/cli/subject.h"

namespace atunner::cli {

/// "memory,init" as HazardGroup bits; memory is always among them. kInvalidInput for an unknown
/// name.
Result<uint8_t> ParseChecks(const std::string& text);

/// A launch on the virtual GPU that looks for hazards of these groups in all blocks.
/// `max_instructions`: of a block's warps.
LaunchOptions OptionsOfChecks(uint8_t groups, double timeout_seconds, uint64_t max_instructions);

/// A race that was met from both of its sides becomes one hazard.
void JoinSides(std::vector<Hazard>& hazards);

Json HazardJson(const Hazard& hazard, SourceLines& source);
void PrintHazard(const Hazard& hazard, SourceLines& source);

/// "no hazards", "1 hazard", "5 hazards".
std::string HowMany(size_t hazards);

/// How a launch ended, in one phrase. `checked`: on the virtual GPU; a real one looks for no
/// hazards, and does not tell how far a kernel came that it ended.
std::string Verdict(const LaunchOutcome& outcome, bool checked);

}  // namespace atunner::cli
