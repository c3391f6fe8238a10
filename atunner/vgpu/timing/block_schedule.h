// How long the SMs take for blocks that do not all do the same.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace atunner::vgpu {

/// A block's share of an average block: 1 = as much.
struct BlockShare {
  float path = 1;  ///< of its time if it had the SM to itself
  float work = 1;  ///< of the SM's pipes
};

/// SMs and the average block that they run, in cycles.
struct SmModel {
  uint64_t sms = 1;
  uint64_t resident = 1;  ///< blocks that an SM holds at a time
  double path = 0;        ///< of a block that has the SM to itself
  double demand = 0;      ///< for which the block occupies the SM's pipes
  double beside = 0;      ///< for which it occupies units that work beside the warps
  /// Exponent of the overlap of latencies with the pipes while so many blocks are resident.
  std::function<double(uint64_t blocks)> sharpness;
};

/// Cycles until the last block has ended. Blocks start in the order given: each on the SM where
/// there is room first, as the hardware does it. Resident blocks share the pipes of their SM: where
/// k equal blocks take T cycles together, each of them advances by 1/T of itself in a cycle. A
/// block that started before all others of its SM is not slowed down by them, because the
/// schedulers prefer the oldest warps. (On an H100 a first block of 79 µs, with 16 383 short ones
/// that take 78 µs, ends after 96 µs; with equal shares it would take 140.)
double Makespan(std::span<const BlockShare> blocks, const SmModel& model);

}  // namespace atunner::vgpu
