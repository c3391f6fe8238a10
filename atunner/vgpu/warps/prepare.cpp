// What one thread of the host keeps of a launch, made ready for its blocks.
#include "atunner/vgpu/warps/prepare.h"

#include <algorithm>

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {
void PrepareRegisters(Warp& warp, const Kernel& kernel) {
  warp.file.assign(kernel.constants.rbegin(), kernel.constants.rend());
  warp.file.resize(kernel.constants.size() + kernel.register_slots + kPaddingSlots);
  warp.registers = warp.file[kernel.constants.size()].lanes.data();
}

/// Nothing is known of shared memory but what the system keeps there, which is in order when a
/// block starts.
void ForgetMemory(Exec& x) {
  std::ranges::fill(x.shadow, SharedShadow{});
  std::ranges::fill(x.hollow, uint8_t{0});
  for (size_t word = x.reserved_shared / 4; word < x.shared.size() / 4; ++word)
    x.shadow[word].initialised = 0xf;
  std::ranges::fill(x.calm, 0u);
  x.exchanges.clear();
  x.reached_into.clear();
  x.last_reach = {};
  x.heard.clear();
  x.cluster_epoch = 0;
  for (auto& pending : x.pending) pending.clear();
  std::ranges::fill(x.copy_group, 0u);
  std::ranges::fill(x.bulk_groups, 0u);
  x.async_reads.clear();
  x.landings.clear();
  x.phase_epoch.clear();
  x.proxy_seen = 0;
}

void StartWarp(Exec& x, Warp& warp) {
  const uint32_t first = warp.index * kLanes;
  const uint32_t lanes = std::min<uint32_t>(kLanes, x.threads - first);
  warp.alive = lanes == kLanes ? ~0u : (1u << lanes) - 1;
  warp.groups.assign(1, Group{0, warp.alive, -1, nullptr, 0});
  warp.sync_epoch = 1;
  warp.seen_epoch = warp.proxy_epoch = warp.product_groups = 0;
  warp.products.clear();
  std::ranges::fill(warp.held, kFree);
  warp.spins = warp.retries = 0;
  warp.waited_with = 0;
  for (int32_t slot : x.kernel->suspect_slots) {
    warp.undefined[static_cast<size_t>(slot)] = ~0u;
    warp.carried[static_cast<size_t>(slot)] = 0;
  }
  for (auto& stack : warp.stack) stack.clear();
  warp.claimed.fill(0);
}

void StartTimes(Exec& x) {
  x.times.resize(x.warps.size());
  x.ports = {};
  x.touch = {};
  for (WarpTime& time : x.times) {
    std::vector<Moment> ready = std::move(time.ready);
    std::vector<WarpTime::Accesses> accesses = std::move(time.accesses);
    std::vector<WarpTime::Place> places = std::move(time.places);
    time = {};
    if (x.launch->schedule) accesses.resize(x.kernel->ops.size());
    for (WarpTime::Accesses& access : accesses) access.touches.clear(), access.taken = 0;
    time.accesses = std::move(accesses);
    ready.assign(x.kernel->track_registers, Moment{});
    time.ready = std::move(ready);
    time.places = std::move(places);
  }
}
}  // namespace

void Prepare(Exec& x, const Launch& launch) {
  x.launch = &launch;
  x.kernel = launch.kernel;
  const auto wants = [&](HazardGroup group) {
    return (launch.groups & static_cast<uint8_t>(group)) != 0;
  };
  x.check = launch.check;
  x.check_sync = launch.check && wants(HazardGroup::kSync);
  x.check_global = launch.check_global;
  x.races = launch.first_serial != 0;
  x.track = launch.memory->tracks_defined() || x.races;
  x.count = launch.count;
  x.count_lines = launch.count && launch.count_lines;
  x.timed = launch.timed;
  x.threads = static_cast<uint32_t>(launch.shape.block.Count());
  const uint32_t warps = (x.threads + kLanes - 1) / kLanes;
  x.warps.resize(warps);
  for (uint32_t i = 0; i < warps; ++i) {
    x.warps[i].index = i;
    PrepareRegisters(x.warps[i], *launch.kernel);
    if (launch.kernel->suspect_slots.empty()) continue;
    x.warps[i].undefined.assign(launch.kernel->register_slots, 0);
    x.warps[i].carried.assign(launch.kernel->register_slots, 0);
  }
  const size_t shared = launch.kernel->dynamic_shared_offset + launch.shape.dynamic_shared_bytes;
  x.reserved_shared = std::max<size_t>(
      launch.kernel->static_shared,
      launch.shape.dynamic_shared_bytes ? shared : launch.kernel->static_shared);
  if (launch.kernel->reserved_shared > 0) x.reserved_shared = (x.reserved_shared + 127) / 128 * 128;
  x.shared.resize(x.reserved_shared + launch.kernel->reserved_shared);
  x.local.resize(size_t{launch.kernel->local_bytes} * x.threads);
  if (x.check_global) x.local_defined.resize(x.local.size());
  if (x.count_lines) x.op_counts.assign(launch.kernel->ops.size(), {});
  x.cluster_phase.assign(x.threads, 0);
  if (x.check) {
    x.shadow.resize((x.shared.size() + 3) / 4 + 8);
    x.calm.resize(x.shadow.size());
    if (launch.kernel->carries) x.hollow.resize(4 * x.shadow.size());
    x.pending.resize(x.threads);
    x.copy_group.resize(x.threads);
    x.bulk_groups.resize(x.threads);
  }
  x.spans.assign(launch.kernel->register_slots, {});
  x.issued_runs.assign(launch.schedule ? launch.schedule->runs.size() : 0, 0);
  x.executed.assign(launch.kernel->ops.size(), {});
  x.stretches.assign(launch.kernel->ops.size() + 1, {});
}

void InitialiseBlock(Exec& x, uint64_t block) {
  const Launch& launch = *x.launch;
  const Dim3& grid = launch.shape.grid;
  x.block = block;
  x.ctaid = {static_cast<uint32_t>(block % grid.x), static_cast<uint32_t>(block / grid.x % grid.y),
             static_cast<uint32_t>(block / grid.x / grid.y)};
  x.epoch = 1;
  x.barriers = {};
  x.instructions = 0;
  x.alive_threads = x.threads;
  x.serial = launch.first_serial + static_cast<uint32_t>(block);
  x.acquired = 0;
  x.stop = false;
  if (x.check_global) std::ranges::fill(x.local_defined, uint8_t{0});
  if (x.check) ForgetMemory(x);
  for (Warp& warp : x.warps) StartWarp(x, warp);
  x.cluster_phase.assign(x.threads, ~0u);
  if (x.timed) StartTimes(x);
  x.unwritten.reset();
  x.yield = x.answered = false;
  x.waits_at.clear();
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
