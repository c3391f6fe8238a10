// How much of a candidate the virtual GPU executes.
#pragma once

#include <cstdint>

#include "atunner/device/device.h"

namespace atunner {

/// Warp instructions that stand for a second of the limit of a launch. The virtual GPU executes
/// about as many on two cores.
inline constexpr double kWorkPerSecond = 1 << 25;

/// Sets the limits of a launch: on the virtual GPU a number of instructions, with a wall clock that
/// only a host in trouble reaches.
void LimitWork(const Device& device, double seconds, LaunchOptions& options);

/// Ends launches that execute many times as many instructions of warps as `most_work` of a launch
/// that ended: e.g. threads that wait for others which do not come. 0 = none has ended.
void LimitToFirst(uint64_t most_work, LaunchOptions& options);

}  // namespace atunner
