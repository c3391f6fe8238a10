// The special registers.
#include <algorithm>

#include "atunner/base/random.h"
#include "atunner/vgpu/hardware/surroundings.h"
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// A special register: its value for one thread, or per lane where lanes differ.
struct SpecialRegister {
  std::string_view name;
  bool by_lane;
  uint64_t (*read)(BlockState& x, uint32_t thread, int lane);
};

const LaunchShape& ShapeOf(const BlockState& x) { return x.launch->shape; }
const Dim3& ClusterOf(const BlockState& x) { return x.launch->cluster; }
uint64_t Constant0(BlockState&, uint32_t, int) { return 0; }
/// Zero in one launch of two, so that results that depend on what is around a kernel show.
uint64_t OfSurroundings(BlockState& x, uint32_t, int) {
  const uint64_t random = Mix64(x.launch->system.grid);
  return random & 1 ? random : 0;
}
uint64_t Clock(BlockState& x, uint32_t, int) { return ClockOf(x); }
uint64_t UpperClock(BlockState& x, uint32_t, int) { return ClockOf(x) >> 32; }
uint64_t Timer(BlockState& x, uint32_t, int) { return TimerOf(x); }
uint64_t UpperTimer(BlockState& x, uint32_t, int) { return TimerOf(x) >> 32; }
uint64_t ReservedBegin(BlockState& x, uint32_t, int) { return x.shared.reserved_at; }
uint64_t ReservedEnd(BlockState& x, uint32_t, int) { return x.shared.bytes.size(); }
uint64_t OwnShared(const BlockState& x) {
  return x.shared.bytes.size() - x.kernel->reserved_shared;
}
/// Shared memory is given out in units of 128 bytes.
uint64_t WholeShared(BlockState& x, uint32_t, int) { return (OwnShared(x) + 127) / 128 * 128; }
uint64_t AllShared(BlockState& x, uint32_t, int) {
  return OwnShared(x) + x.launch->system.reserved_shared;
}

constexpr SpecialRegister kSpecials[] = {
    {"%tid.x", true,
     [](BlockState& x, uint32_t thread, int) -> uint64_t { return thread % ShapeOf(x).block.x; }},
    {"%tid.y", true,
     [](BlockState& x, uint32_t thread, int) -> uint64_t {
       return thread / ShapeOf(x).block.x % ShapeOf(x).block.y;
     }},
    {"%tid.z", true,
     [](BlockState& x, uint32_t thread, int) -> uint64_t {
       return thread / ShapeOf(x).block.x / ShapeOf(x).block.y;
     }},
    {"%ntid.x", false, [](BlockState& x, uint32_t, int) -> uint64_t { return ShapeOf(x).block.x; }},
    {"%ntid.y", false, [](BlockState& x, uint32_t, int) -> uint64_t { return ShapeOf(x).block.y; }},
    {"%ntid.z", false, [](BlockState& x, uint32_t, int) -> uint64_t { return ShapeOf(x).block.z; }},
    {"%ctaid.x", false, [](BlockState& x, uint32_t, int) -> uint64_t { return x.ctaid[0]; }},
    {"%ctaid.y", false, [](BlockState& x, uint32_t, int) -> uint64_t { return x.ctaid[1]; }},
    {"%ctaid.z", false, [](BlockState& x, uint32_t, int) -> uint64_t { return x.ctaid[2]; }},
    {"%nctaid.x", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ShapeOf(x).grid.x; }},
    {"%nctaid.y", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ShapeOf(x).grid.y; }},
    {"%nctaid.z", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ShapeOf(x).grid.z; }},
    {"%laneid", true,
     [](BlockState&, uint32_t, int lane) -> uint64_t { return static_cast<uint64_t>(lane); }},
    {"%warpid", false, [](BlockState& x, uint32_t, int) -> uint64_t { return WarpSlotOf(x); }},
    {"%nwarpid", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return x.launch->system.warps_per_sm; }},
    {"%warpsize", false, [](BlockState&, uint32_t, int) -> uint64_t { return kLanes; }},
    {"%smid", false, [](BlockState& x, uint32_t, int) -> uint64_t { return SmOf(x); }},
    {"%nsmid", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return x.launch->system.sms; }},
    {"%gridid", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return x.launch->system.grid; }},
    {"%clock", false, Clock},
    {"%clock64", false, Clock},
    {"%globaltimer", false, Timer},
    {"%globaltimer_lo", false, Timer},
    {"%clock_hi", false, UpperClock},
    {"%globaltimer_hi", false, UpperTimer},
    {"%lanemask_eq", true, [](BlockState&, uint32_t, int lane) -> uint64_t { return 1u << lane; }},
    {"%lanemask_le", true,
     [](BlockState&, uint32_t, int lane) -> uint64_t { return (2ull << lane) - 1; }},
    {"%lanemask_lt", true,
     [](BlockState&, uint32_t, int lane) -> uint64_t { return (1u << lane) - 1; }},
    {"%lanemask_ge", true,
     [](BlockState&, uint32_t, int lane) -> uint64_t {
       return static_cast<uint32_t>(~((1u << lane) - 1));
     }},
    {"%lanemask_gt", true,
     [](BlockState&, uint32_t, int lane) -> uint64_t {
       return static_cast<uint32_t>(~((2ull << lane) - 1));
     }},
    {"%dynamic_smem_size", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ShapeOf(x).dynamic_shared_bytes; }},
    {"%total_smem_size", false, WholeShared},
    {"%aggr_smem_size", false, AllShared},
    {"%cluster_ctarank", false,
     [](BlockState& x, uint32_t, int) -> uint64_t {
       return ClusterOf(x).Count() > 1 ? x.cluster.rank : 0;
     }},
    {"%cluster_nctarank", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ClusterOf(x).Count(); }},
    {"%cluster_ctaid.x", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return x.ctaid[0] % ClusterOf(x).x; }},
    {"%cluster_ctaid.y", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return x.ctaid[1] % ClusterOf(x).y; }},
    {"%cluster_ctaid.z", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return x.ctaid[2] % ClusterOf(x).z; }},
    {"%cluster_nctaid.x", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ClusterOf(x).x; }},
    {"%cluster_nctaid.y", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ClusterOf(x).y; }},
    {"%cluster_nctaid.z", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ClusterOf(x).z; }},
    {"%clusterid.x", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return x.ctaid[0] / ClusterOf(x).x; }},
    {"%clusterid.y", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return x.ctaid[1] / ClusterOf(x).y; }},
    {"%clusterid.z", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return x.ctaid[2] / ClusterOf(x).z; }},
    {"%nclusterid.x", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ShapeOf(x).grid.x / ClusterOf(x).x; }},
    {"%nclusterid.y", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ShapeOf(x).grid.y / ClusterOf(x).y; }},
    {"%nclusterid.z", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ShapeOf(x).grid.z / ClusterOf(x).z; }},
    {"%is_explicit_cluster", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return ClusterOf(x).Count() > 1; }},
    {"%envreg1", false,
     [](BlockState& x, uint32_t, int) -> uint64_t { return x.launch->grid_workspace >> 32; }},
    {"%envreg2", false,
     [](BlockState& x, uint32_t, int) -> uint64_t {
       return x.launch->grid_workspace & 0xffffffffu;
     }},
    {"%reserved_smem_offset_begin", false, ReservedBegin},
    {"%reserved_smem_offset_end", false, ReservedEnd},
    {"%reserved_smem_offset_cap", false, ReservedEnd},
    {"%reserved_smem_offset_0", false, ReservedBegin},
    {"%reserved_smem_offset_1", false,
     [](BlockState& x, uint32_t, int) -> uint64_t {
       return x.shared.reserved_at + kReservedShared / 2;
     }},
    {"%current_graph_exec", false, OfSurroundings},  // not zero in a launch of a CUDA graph
    // What the driver puts into the others is not documented; these are the values that were seen
    // on an H100, of which the first differs from driver to driver.
    {"%envreg0", false,
     [](BlockState& x, uint32_t, int) -> uint64_t {
       return (Mix64(x.launch->system.booted_ns) & 0x3ffff00) | 8;
     }},
    {"%envreg6", false, [](BlockState&, uint32_t, int) -> uint64_t { return 1; }},
    {"%envreg10", false, [](BlockState&, uint32_t, int) -> uint64_t { return 288; }},
    {"%envreg", false, Constant0},
    {"%pm", false, OfSurroundings},  // performance counters, which are zero without a profiler
};

/// "%envreg31", "%pm3_64": the name without its number, where that is one that there is.
std::string_view Numbered(std::string_view name) {
  for (const auto& [prefix, count] :
       {std::pair(std::string_view("%envreg"), 32), std::pair(std::string_view("%pm"), 8)}) {
    if (!name.starts_with(prefix)) continue;
    std::string_view digits = name.substr(prefix.size());
    if (prefix == "%pm" && digits.ends_with("_64")) digits.remove_suffix(3);
    for (int i = 0; i < count; ++i) {
      if (digits == std::to_string(i)) return prefix;
    }
  }
  return "";
}

}  // namespace

bool ReadsTime(std::string_view name) {
  return name.starts_with("%clock") || name.starts_with("%globaltimer");
}

std::optional<uint64_t> FindSpecial(std::string_view name) {
  const auto* at = std::ranges::find(kSpecials, name, &SpecialRegister::name);
  if (at == std::end(kSpecials))
    at = std::ranges::find(kSpecials, Numbered(name), &SpecialRegister::name);
  return at == std::end(kSpecials) ? std::nullopt : std::optional<uint64_t>(at - kSpecials);
}

void ReadSpecial(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const SpecialRegister& special = kSpecials[op.imm];
  const uint64_t common = special.by_lane ? 0 : special.read(x, 0, 0);
  ForLanes(mask, [&](int l) {
    const uint64_t v = special.by_lane ? special.read(x, x.ThreadOf(l), l) : common;
    if (op.width == 8)
      Lane<uint64_t>::Set(d, l, v);
    else
      d[l] = static_cast<uint32_t>(v);
  });
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
