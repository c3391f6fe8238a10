#include "atunner/vgpu/hardware/surroundings.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "atunner/base/random.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// Clocks between the starts of blocks that follow each other in one place of an SM. How long a
/// block takes is not known before it ran, and clocks must not depend on the order in which the
/// threads of the host run blocks.
constexpr uint64_t kClocksPerWave = 3000;
/// Clocks in which an SM takes the blocks of a launch, one after another.
constexpr uint64_t kClocksPerBlock = 200;
/// Clocks from the begin of a launch to its first blocks.
constexpr uint64_t kClocksToStart = 900;
/// Step of %globaltimer in nanoseconds, as on an H100.
constexpr uint64_t kTimerStep = 32;
/// SMs of a GPC (a group of SMs with a scheduler of its own) on large GPUs, on average.
constexpr uint32_t kSmsPerGroup = 17;
/// The clocks of GPCs do not start at the same time; they differ by less than this.
constexpr uint64_t kClockSpread = uint64_t{1} << 26;

/// How SMs are numbered: in pairs, and these in turn to the groups.
struct Groups {
  explicit Groups(uint32_t total)
      : sms(total),
        pairs((total + 1) / 2),
        count(std::max(1u, (total + kSmsPerGroup / 2) / kSmsPerGroup)) {}
  uint32_t sms;
  uint32_t pairs;
  uint32_t count;

  uint32_t SizeOf(uint32_t group) const {
    return 2 * (pairs / count + (group < pairs % count ? 1u : 0u));
  }
  uint32_t SmOf(uint32_t group, uint32_t place) const {
    return (2 * (place / 2 * count + group) + place % 2) % sms;
  }
  uint32_t GroupOf(uint32_t sm) const { return sm / 2 % count; }
};

/// A number for a block, or another thing of a launch, that depends on the seed.
uint64_t Draw(const SystemFacts& system, uint64_t what) {
  return Mix64(system.seed ^ Mix64(what + system.grid));
}

/// Which of the blocks that run at once a block is, and how many such sets ran before.
struct Turn {
  uint64_t place = 0;
  uint64_t wave = 0;
};
Turn TurnOf(const BlockState& x) {
  const SystemFacts& system = x.launch->system;
  const uint64_t resident = uint64_t{system.sms} * system.blocks_per_sm;
  return {x.block % resident, x.block / resident};
}

/// The `place`-th SM to which a free GPU gives blocks: group by group, pair by pair. The group that
/// begins changes from launch to launch.
uint32_t SmInOrder(const SystemFacts& system, uint64_t place) {
  const Groups groups(system.sms);
  auto left = static_cast<uint32_t>(place % system.sms);
  auto group = static_cast<uint32_t>(Draw(system, 0) % groups.count);
  while (left >= groups.SizeOf(group)) {
    left -= groups.SizeOf(group);
    group = (group + 1) % groups.count;
  }
  return groups.SmOf(group, left);
}

/// The SM of a block of a cluster: all are in one group.
uint32_t SmOfCluster(const BlockState& x, uint32_t size) {
  const Groups groups(x.launch->system.sms);
  const Dim3& grid = x.launch->shape.grid;
  const Dim3& cluster = x.launch->cluster;
  const uint64_t number = (uint64_t{x.ctaid[2] / cluster.z} * (grid.y / cluster.y) +
                           x.ctaid[1] / cluster.y) *
                              (grid.x / cluster.x) +
                          x.ctaid[0] / cluster.x;
  const uint64_t drawn = number + Draw(x.launch->system, 0);
  const auto group = static_cast<uint32_t>(drawn % groups.count);
  const uint32_t fit = std::max(1u, groups.SizeOf(group) / size);
  const auto at = static_cast<uint32_t>(number / groups.count % fit);
  return groups.SmOf(group, (at * size + x.cluster.rank) % groups.SizeOf(group));
}

/// Clocks from the begin of the launch to that of the block.
uint64_t StartOf(const BlockState& x) {
  const SystemFacts& system = x.launch->system;
  const Turn turn = TurnOf(x);
  return kClocksToStart + turn.wave * kClocksPerWave + turn.place / system.sms * kClocksPerBlock +
         Draw(system, x.block + 1) % 32;
}

uint64_t SinceBegin(const BlockState& x) {
  return StartOf(x) + x.warp->clocks + 2 * uint64_t{x.warp->index};
}

}  // namespace

uint32_t SmOf(const BlockState& x) {
  const SystemFacts& system = x.launch->system;
  if (const uint64_t size = x.launch->cluster.Count(); size > 1)
    return SmOfCluster(x, static_cast<uint32_t>(size));
  const Turn turn = TurnOf(x);
  if (turn.wave == 0) return SmInOrder(system, turn.place);
  // Later blocks go where one ends: any SM, each as often as the others.
  uint64_t factor = Draw(system, ~turn.wave) % system.sms;
  while (std::gcd(factor, uint64_t{system.sms}) != 1) ++factor;
  const uint64_t shift = Draw(system, turn.wave << 32) % system.sms;
  return SmInOrder(system, turn.place * factor + shift);
}

/// Warps are dealt to the four quarters of an SM in turn, from one that changes.
uint32_t WarpSlotOf(const BlockState& x) {
  const SystemFacts& system = x.launch->system;
  const auto warps = static_cast<uint32_t>(x.warps.size());
  const auto before = static_cast<uint32_t>(TurnOf(x).place / system.sms);
  const uint32_t place = before * warps + x.warp->index;
  const auto first = static_cast<uint32_t>(Draw(system, 2) % 4);
  return (place / 4 * 4 + (place + first) % 4) % system.warps_per_sm;
}

uint64_t ClockOf(const BlockState& x) {
  const SystemFacts& system = x.launch->system;
  const double since_boot = static_cast<double>(system.began_ns - system.booted_ns);
  const uint64_t offset = Mix64(system.booted_ns + Groups(system.sms).GroupOf(SmOf(x))) %
                          kClockSpread;
  return static_cast<uint64_t>(since_boot * system.clocks_per_ns) + offset + SinceBegin(x);
}

uint64_t TimerOf(const BlockState& x) {
  const SystemFacts& system = x.launch->system;
  const double since_begin = static_cast<double>(SinceBegin(x)) / system.clocks_per_ns;
  return (system.began_ns + static_cast<uint64_t>(since_begin)) / kTimerStep * kTimerStep;
}

uint64_t EndOf(const BlockState& x) {
  uint64_t clocks = 0;
  for (const Warp& warp : x.warps) clocks = std::max(clocks, warp.clocks);
  const uint64_t whole = StartOf(x) + std::max(clocks, kClocksPerWave);
  return static_cast<uint64_t>(static_cast<double>(whole) / x.launch->system.clocks_per_ns);
}

/// An H100 sleeps for the next power of two above the time asked for, and no longer than 2^20 ns.
void Sleep(BlockState& x, const Op& op, uint32_t mask) {
  constexpr uint32_t kLongest = 1'000'000, kShortest = 31;
  const uint32_t* times = x.Source(op.src[0]);
  uint32_t longest = kShortest;
  ForLanes(mask, [&](int l) { longest = std::max(longest, std::min(times[l], kLongest)); });
  const double clocks = std::bit_ceil(longest + 1) * x.launch->system.clocks_per_ns;
  x.warp->clocks += static_cast<uint64_t>(clocks) + 30;
  x.progress.yield = true;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
