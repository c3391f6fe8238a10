// Which hazards a launch on the virtual GPU looks for, and how equal ones are joined.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "atunner/device/device.h"

namespace atunner::jobs {

/// "memory,init" as bits of HazardGroup; memory is always among them. kInvalidInput for an unknown
/// name.
Result<uint8_t> ParseChecks(const std::string& text);

/// "memory", "init", "race" or "sync".
std::string_view CheckOf(const Hazard& hazard);

/// A launch on the virtual GPU that looks for hazards of these groups in all blocks.
/// `max_instructions`: warp instructions of a block.
LaunchOptions OptionsOfChecks(uint8_t groups, double timeout_seconds, uint64_t max_instructions);

/// Joins two hazards that are one race, reported from both of its sides.
void JoinSides(std::vector<Hazard>& hazards);

}  // namespace atunner::jobs
