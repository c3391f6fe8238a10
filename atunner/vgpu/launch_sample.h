// Which blocks of a launch a prediction executes, and what they stand for. docs/timing-model.md
// describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "atunner/vgpu/engine.h"
#include "atunner/vgpu/timing/block_schedule.h"

namespace atunner::vgpu {

struct SampledLaunch {
  const Program& program;
  const Memory& memory;
  const std::string& entry;
  const LaunchShape& shape;
  std::span<const std::byte> params;
  uint64_t cluster = 1;  ///< blocks
  double footprint = 0;  ///< bytes of the arguments
  uint64_t at_once = 1;  ///< blocks that the device can hold
};

struct LaunchSample {
  ExecResult result;               ///< its counts are those of all blocks if `counted` says so
  double counted = 0;              ///< blocks that the counts stand for; 0 = those executed
  std::vector<uint64_t> executed;  ///< as Prediction::blocks
  std::vector<BlockShare> shares;  ///< as EstimateInput::shares
  double unknown_work = 0;         ///< as EstimateInput::unknown_work
  Allocations stored;              ///< allocations that the kernel writes
};

/// Blocks of the cluster that a launch has, 1 without clusters.
uint64_t ClusterSize(const ptx::Function& function, const LaunchShape& shape);

/// True if all blocks of a cooperative grid run; grids with much work are sampled.
bool RunsWhole(const LaunchShape& shape, double footprint);

/// Executes what is needed to know the launch's work. `exec`: options of a launch that predicts,
/// without blocks. Where blocks do different work, all of them run the slice that decides it
/// (analysis/work_slice.h), and each kind is represented in proportion.
LaunchSample SampleLaunch(const SampledLaunch& launch, const ExecOptions& exec);

}  // namespace atunner::vgpu
