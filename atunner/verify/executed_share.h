// How much of a candidate the virtual GPU executes.
#pragma once

#include "atunner/device/device.h"

namespace atunner {

/// Warp instructions that stand for a second of the limit of a launch. The virtual GPU executes
/// about as many on two cores.
inline constexpr double kWorkPerSecond = 1 << 25;

/// Sets the limits of a launch: on the virtual GPU a number of instructions, with a wall clock that
/// only a host in trouble reaches.
void LimitWork(const Device& device, double seconds, LaunchOptions& options);

}  // namespace atunner
