// The table of known GPUs, and the occupancy of a launch.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/device/device.h"
#include "atunner/model/value/device_profile.h"

namespace atunner {

std::span<const DeviceProfile> KnownProfiles();

/// Finds a profile by name or alias ("A100", "rtx4090", "h200"), ignoring case. kInvalidInput with
/// the known names otherwise. "A100@765" is an A100 whose SMs are locked at 765 MHz.
Result<DeviceProfile> FindProfile(std::string_view name);
/// The profile whose full name equals what a driver reports; nullptr when unknown.
const DeviceProfile* MatchDriverName(std::string_view full_name);

/// The number of blocks of one kernel that an SM holds at once, computed like CUDA's occupancy
/// calculator (cuda_occupancy.h): registers per warp in allocation units, shared memory in units
/// plus the system's share per block, warps, blocks.
Occupancy ComputeOccupancy(const DeviceProfile& profile, const KernelResources& resources,
                           const LaunchShape& shape);

}  // namespace atunner
