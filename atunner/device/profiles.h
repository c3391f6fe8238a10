// GPUs we know in numbers, and how a launch fits them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/device/device.h"
#include "atunner/model/value/device_profile.h"

namespace atunner {

std::span<const DeviceProfile> KnownProfiles();

/// By name or alias ("A100", "rtx4090", "h200"), whatever the case. kInvalidInput with the nearest
/// name otherwise. "A100@765" is an A100 whose SMs are locked at 765 MHz.
Result<DeviceProfile> FindProfile(std::string_view name);
/// The row whose `full_name` or name occurs in what a driver reports; nullptr when unknown.
const DeviceProfile* MatchDriverName(std::string_view full_name);

/// Blocks of one kernel that an SM holds at once, as CUDA's occupancy calculator computes it
/// (cuda_occupancy.h): registers per warp in allocation units, shared memory in units plus the
/// system's share per block, warps, blocks.
Occupancy ComputeOccupancy(const DeviceProfile& profile, const KernelResources& resources,
                           const LaunchShape& shape);

}  // namespace atunner
