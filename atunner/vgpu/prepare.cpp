// What one thread of the host keeps of a launch, made ready for its blocks.
#include "atunner/vgpu/internal.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {
void PrepareRegisters(Warp& warp, const Kernel& kernel) {
  warp.file.assign(kernel.constants.rbegin(), kernel.constants.rend());
  warp.file.resize(kernel.constants.size() + kernel.register_slots + kPaddingSlots);
  warp.registers = warp.file[kernel.constants.size()].lanes.data();
}
}  // namespace

void Prepare(Exec& x, const Launch& launch) {
  x.launch = &launch;
  x.kernel = launch.kernel;
  const auto wants = [&](HazardGroup group) { return (launch.groups & static_cast<uint8_t>(group)) != 0; };
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
  x.reserved_shared = std::max<size_t>(launch.kernel->static_shared,
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

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
