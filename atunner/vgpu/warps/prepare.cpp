// Prepares block states for a launch, and resets them for each block.
#include "atunner/vgpu/warps/prepare.h"

#include <algorithm>

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {
void PrepareRegisters(Warp& warp, const Kernel& kernel) {
  warp.file.assign(kernel.constants.rbegin(), kernel.constants.rend());
  warp.file.resize(kernel.constants.size() + kernel.register_slots + kPaddingSlots);
  warp.registers = warp.file[kernel.constants.size()].lanes.data();
}

/// Clears the shadow of shared memory. The system's part counts as initialised.
void ClearShadow(BlockState& x) {
  std::ranges::fill(x.shadow.words, SharedShadow{});
  std::ranges::fill(x.shadow.undefined_bytes, uint8_t{0});
  for (size_t word = x.shared.reserved_at / 4; word < x.shared.bytes.size() / 4; ++word)
    x.shadow.words[word].initialised = 0xf;
  std::ranges::fill(x.shadow.only_read_in, 0u);
  x.shadow.exchanges.clear();
  x.shadow.strong.clear();
  x.shadow.released.clear();
  x.cluster.words.clear();
  x.cluster.last_access = {};
  x.cluster.happens_before.clear();
  x.cluster.synchronised_epoch = 0;
  for (auto& pending : x.async.copies) pending.clear();
  std::ranges::fill(x.async.copy_groups, 0u);
  std::ranges::fill(x.async.bulk_groups, 0u);
  x.async.reads.clear();
  x.async.landings.clear();
  x.async.phase_epochs.clear();
  x.async.arrivals.clear();
  x.async.phases.clear();
  x.async.proxy_epoch = 0;
}

void StartWarp(BlockState& x, Warp& warp) {
  const uint32_t first = warp.index * kLanes;
  const uint32_t lanes = std::min<uint32_t>(kLanes, x.threads - first);
  warp.alive = lanes == kLanes ? ~0u : (1u << lanes) - 1;
  warp.groups.assign(1, Group{0, warp.alive, -1, nullptr, 0});
  warp.sync_epoch = 1;
  warp.seen_epoch = warp.proxy_epoch = warp.product_groups = warp.polled_epoch = 0;
  warp.before.Reset(1);
  warp.fence = {};
  warp.products.clear();
  std::ranges::fill(warp.held, kFree);
  warp.spins = warp.retries = 0;
  warp.clocks = 0;
  warp.waited_with = 0;
  for (int32_t slot : x.kernel->maybe_undefined_slots) {
    warp.undefined[static_cast<size_t>(slot)] = ~0u;
    warp.carried[static_cast<size_t>(slot)] = 0;
  }
  for (auto& stack : warp.stack) stack.clear();
  warp.claimed.fill(0);
}

void StartTimes(BlockState& x) {
  x.timing.warps.resize(x.warps.size());
  x.timing.ports = {};
  x.timing.touch = {};
  for (WarpTime& time : x.timing.warps) {
    std::vector<Moment> ready = std::move(time.ready);
    std::vector<WarpTime::Accesses> accesses = std::move(time.accesses);
    std::vector<WarpTime::Position> positions = std::move(time.positions);
    time = {};
    if (x.launch->schedule) accesses.resize(x.kernel->ops.size());
    for (WarpTime::Accesses& access : accesses) access.touches.clear(), access.taken = 0;
    time.accesses = std::move(accesses);
    ready.assign(x.kernel->track_registers, Moment{});
    time.ready = std::move(ready);
    time.positions = std::move(positions);
  }
}
void EnableChecks(BlockState& x, const Launch& launch) {
  const auto wants = [&](HazardGroup group) {
    return (launch.options.groups & static_cast<uint8_t>(group)) != 0;
  };
  x.checks.any = launch.options.check;
  x.checks.sync = launch.options.check && wants(HazardGroup::kSync);
  x.checks.memory = launch.options.check_global;
  x.checks.global_races = launch.first_serial != 0;
  // What a prediction writes is read by predictions only, which check nothing.
  x.checks.track_stores = (launch.memory->tracks_defined() && !launch.options.timed) ||
                          x.checks.global_races;
}

void PrepareWarps(BlockState& x, const Kernel& kernel) {
  x.warps.resize((x.threads + kLanes - 1) / kLanes);
  for (uint32_t i = 0; i < x.warps.size(); ++i) {
    x.warps[i].index = i;
    PrepareRegisters(x.warps[i], kernel);
    if (kernel.maybe_undefined_slots.empty()) continue;
    x.warps[i].undefined.assign(kernel.register_slots, 0);
    x.warps[i].carried.assign(kernel.register_slots, 0);
  }
}

void PrepareMemory(BlockState& x, const Kernel& kernel, uint32_t dynamic_shared_bytes) {
  const size_t shared = kernel.dynamic_shared_offset + dynamic_shared_bytes;
  x.shared.reserved_at = std::max<size_t>(kernel.static_shared,
                                          dynamic_shared_bytes ? shared : kernel.static_shared);
  if (kernel.reserved_shared > 0) x.shared.reserved_at = (x.shared.reserved_at + 127) / 128 * 128;
  x.shared.bytes.resize(x.shared.reserved_at + kernel.reserved_shared);
  x.local.bytes.resize(size_t{kernel.local_bytes} * x.threads);
  if (x.checks.memory) x.local.defined.resize(x.local.bytes.size());
}

void PrepareShadow(BlockState& x, const Kernel& kernel) {
  x.shadow.words.resize((x.shared.bytes.size() + 3) / 4 + 8);
  x.shadow.only_read_in.resize(x.shadow.words.size());
  if (kernel.carries_undefined) x.shadow.undefined_bytes.resize(4 * x.shadow.words.size());
  x.async.copies.resize(x.threads);
  x.async.copy_groups.resize(x.threads);
  x.async.bulk_groups.resize(x.threads);
}

void PrepareCounting(BlockState& x, const Launch& launch) {
  const size_t ops = launch.kernel->ops.size();
  x.counting.enabled = launch.options.count;
  x.counting.by_line = launch.options.count && launch.options.count_lines;
  if (x.counting.by_line) x.counting.by_op.assign(ops, {});
  x.counting.executed.assign(ops, {});
  x.counting.basic_blocks.assign(ops + 1, {});
  x.timing.enabled = launch.options.timed;
  x.timing.issued_runs.assign(launch.schedule ? launch.schedule->runs.size() : 0, 0);
}

}  // namespace

void Prepare(BlockState& x, const Launch& launch) {
  x.launch = &launch;
  x.kernel = launch.kernel;
  x.threads = static_cast<uint32_t>(launch.shape.block.Count());
  EnableChecks(x, launch);
  PrepareWarps(x, *launch.kernel);
  PrepareMemory(x, *launch.kernel, launch.shape.dynamic_shared_bytes);
  if (x.checks.any) PrepareShadow(x, *launch.kernel);
  PrepareCounting(x, launch);
  x.cluster.phase.assign(x.threads, 0);
  x.spans.of_slot.assign(launch.kernel->register_slots, {});
}

void InitialiseBlock(BlockState& x, uint64_t block) {
  const Launch& launch = *x.launch;
  const Dim3& grid = launch.shape.grid;
  x.block = block;
  x.ctaid = {static_cast<uint32_t>(block % grid.x), static_cast<uint32_t>(block / grid.x % grid.y),
             static_cast<uint32_t>(block / grid.x / grid.y)};
  x.shadow.epoch = x.shadow.common_epoch = 1;
  x.progress.barriers = {};
  x.progress.instructions = 0;
  x.progress.alive_threads = x.threads;
  x.global.serial = launch.first_serial + static_cast<uint32_t>(block);
  x.global.acquired = 0;
  x.global.observed = x.global.fenced = false;
  x.stop = false;
  if (x.checks.memory) std::ranges::fill(x.local.defined, uint8_t{0});
  if (x.checks.any) ClearShadow(x);
  for (Warp& warp : x.warps) StartWarp(x, warp);
  x.cluster.phase.assign(x.threads, ~0u);
  if (x.timing.enabled) StartTimes(x);
  x.shadow.unwritten_read.reset();
  for (std::vector<uint32_t>& undefined : x.shuffled.undefined) std::ranges::fill(undefined, 0u);
  x.progress.yield = x.progress.leave_polling_loops = false;
  x.progress.polling_loops.clear();
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
