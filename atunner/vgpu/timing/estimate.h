// Time from counts: an analytic model, explained in docs/timing-model.md. What it gives is a
// prediction.
#pragma once

#include "atunner/device/calibration.h"
#include "atunner/device/device.h"
#include "atunner/model/trial/performance.h"
#include "atunner/model/value/device_profile.h"
#include "atunner/vgpu/timing/block_schedule.h"
#include "atunner/vgpu/timing/counts.h"

namespace atunner::vgpu {

struct EstimateInput {
  const DeviceProfile* profile = nullptr;
  Calibration calibration;
  KernelResources resources;
  LaunchShape shape;
  Occupancy occupancy;
  uint64_t cluster = 1;  ///< blocks
  Counts counts;         ///< counts of the executed blocks
  uint64_t blocks_executed = 0;
  /// Blocks that the counts stand for, where they were scaled up; 0 = those executed
  double blocks_counted = 0;
  /// Per block of the grid: its share of the average; empty = all are about alike
  std::vector<BlockShare> shares;
  /// Work, in average blocks, that one block may do of which nothing is known; 0 = none is unknown
  double unknown_work = 0;
  double footprint_bytes = 0;  ///< distinct global bytes the whole launch can touch
  bool follows = false;        ///< another launch, without a pause
  double known_bytes = 0;      ///< part of the footprint that earlier launches may have accessed
  double moved_before = 0;     ///< bytes that these launches moved through L2
};

/// Latencies of a GPU, for the timelines of counted blocks; `blocks` of a launch share its L2.
Latencies LatenciesOf(const DeviceProfile& profile, const Calibration& calibration,
                      uint64_t blocks);

/// Cycles that a spilled register takes on its way back, while as many blocks as fit share an SM's
/// L1.
double SpillClk(const DeviceProfile& profile, const Calibration& calibration,
                const KernelResources& resources, const LaunchShape& shape,
                const Occupancy& occupancy);

/// Sectors of 32 bytes that L1 holds per block, while as many blocks as fit share an SM.
uint64_t L1SectorsPerBlock(const DeviceProfile& profile, const KernelResources& resources,
                           const LaunchShape& shape, const Occupancy& occupancy);

/// Time in ns of the atomic updates that wait for each other in L2.
double AtomicNs(const EstimateInput& input);

/// Parts that are not marked overlapped add up to time_ns.
Estimate EstimateTime(const EstimateInput& input);

}  // namespace atunner::vgpu
