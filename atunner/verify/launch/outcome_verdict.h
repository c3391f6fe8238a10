// The verdict on a launch that did not complete.
#pragma once

#include <string>
#include <utility>

#include "atunner/device/device.h"
#include "atunner/model/trial/verdict.h"

namespace atunner {

/// Kind and reason, e.g. (kRace, "scan.cu:31: race: …").
std::pair<VerdictKind, std::string> VerdictOf(const LaunchOutcome& outcome);

}  // namespace atunner
