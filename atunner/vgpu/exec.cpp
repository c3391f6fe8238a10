// Warps, divergence and barriers: runs one block to its end.
#include <algorithm>

#include "atunner/base/clock.h"
#include "atunner/vgpu/internal.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint32_t kSlice = 20000;    // operations a warp may run before another gets its turn
constexpr uint32_t kSpinLimit = 512;  // backward branches before a diverged sibling gets its turn
constexpr size_t kMaxHazards = 16;

/// Merges groups at equal places and sorts by place: the earliest runs first, so that diverged lanes meet again.
void Normalise(Warp& warp) {
  std::erase_if(warp.groups, [](const Group& group) { return group.mask == 0; });
  std::ranges::sort(warp.groups, [](const Group& a, const Group& b) { return a.pc < b.pc; });
  for (size_t i = 0; i + 1 < warp.groups.size();) {
    Group& a = warp.groups[i];
    const Group& b = warp.groups[i + 1];
    if (a.pc == b.pc && a.barrier == b.barrier) {
      a.mask |= b.mask;
      warp.groups.erase(warp.groups.begin() + static_cast<long>(i) + 1);
    } else {
      ++i;
    }
  }
}

void WriteReduction(Exec& x, Warp& warp, const Group& group, const BarrierState& state, uint32_t total) {
  Warp* saved = x.warp;
  x.warp = &warp;
  const Op& op = *group.reduction;
  uint32_t* d = x.Slot(op.dst);
  if (op.variant == 2) {
    ForLanes(group.mask, [&](int l) { d[l] = state.votes; });
  } else {
    const bool holds = op.variant == 3 ? state.votes == total : state.votes > 0;
    *d = (*d & ~group.mask) | (holds ? group.mask : 0);
  }
  x.warp = saved;
}

void Release(Exec& x, int id) {
  BarrierState& state = x.barriers[static_cast<size_t>(id)];
  for (Warp& warp : x.warps) {
    bool any = false;
    for (Group& group : warp.groups) {
      if (group.barrier != id) continue;
      if (group.reduction) WriteReduction(x, warp, group, state, state.arrived);
      group.barrier = -1;
      group.reduction = nullptr;
      any = true;
    }
    if (any) Normalise(warp);
  }
  state = {};
  ++x.epoch;
}

/// Opens barriers that exited threads were the last missing ones of.
void CheckBarriers(Exec& x) {
  for (int id = 0; id < 16; ++id) {
    const BarrierState& state = x.barriers[static_cast<size_t>(id)];
    if (state.arrived > 0 && state.arrived >= (state.expected ? state.expected : x.alive_threads)) Release(x, id);
  }
}

void Arrive(Exec& x, const Op& op, Group& group, uint32_t mask) {
  const int first = std::countr_zero(mask);
  const auto id = static_cast<int>(x.Source(op.src[0])[first]);
  if (id < 0 || id > 15)
    return Report(x, op, Hazard::Kind::kDivergentBarrier, first,
                  "barrier number " + std::to_string(id) + " does not exist");
  if (x.check && !op.relaxed && mask != x.warp->alive) {
    return Report(x, op, Hazard::Kind::kDivergentBarrier, first, "only some lanes of the warp reach this barrier");
  }
  BarrierState& state = x.barriers[static_cast<size_t>(id)];
  state.arrived += static_cast<uint32_t>(std::popcount(mask));
  if (op.src[1] != INT32_MIN) state.expected = x.Source(op.src[1])[first];
  if (op.variant >= 2) {
    const uint32_t p = *x.Source(op.src[2]) ^ (op.sign_extend ? ~0u : 0u);
    state.votes += static_cast<uint32_t>(std::popcount(p & mask));
    group.reduction = &op;
  }
  if (op.variant != 1) group.barrier = id;
  if (state.arrived >= (state.expected ? state.expected : x.alive_threads)) Release(x, id);
}

void ArriveWarp(Exec& x, const Op& op, size_t index, uint32_t mask) {
  Warp& warp = *x.warp;
  warp.members = x.Source(op.src[0])[std::countr_zero(mask)];
  warp.groups[index].barrier = kWarpBarrier;
  uint32_t arrived = 0;
  for (const Group& group : warp.groups) {
    if (group.barrier == kWarpBarrier) arrived |= group.mask;
  }
  if ((warp.members & warp.alive & ~arrived) != 0) return;
  for (Group& group : warp.groups) {
    if (group.barrier == kWarpBarrier) group.barrier = -1;
  }
  ++warp.sync_epoch;
  Normalise(warp);
}

/// Lanes of the same warp that a collective at `pc` has to wait for. Those that wait at this very place join the group.
/// False: run it now, with the lanes there are.
bool MustWait(Exec& x, const Op& op, size_t index, uint32_t pc) {
  Warp& warp = *x.warp;
  Group& group = warp.groups[index];
  const uint32_t named = x.Source(op.src[op.target])[std::countr_zero(group.mask)];
  if ((named & warp.alive & ~group.mask) == 0) return false;
  bool other_runs = false;
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    Group& other = warp.groups[i];
    if (i == index || other.mask == 0) continue;
    if (other.barrier == kCollective && other.pc == pc) {
      group.mask |= other.mask;
      other.mask = 0;
    } else {
      other_runs |= other.barrier < 0;
    }
  }
  return other_runs && (named & warp.alive & ~group.mask) != 0;
}

/// A sibling that got its turn early is not divergent yet: it waits for the lanes behind it, which may still come.
/// Those that wait at this very place join the group.
bool WaitsForSiblings(Warp& warp, size_t index, uint32_t pc) {
  bool behind = false;
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    Group& other = warp.groups[i];
    if (i == index || other.mask == 0) continue;
    if (other.barrier == kCollective && other.pc == pc) {
      warp.groups[index].mask |= other.mask;
      other.mask = 0;
    }
    behind |= other.barrier < 0 && other.mask != 0 && other.pc < pc;
  }
  return behind;
}

/// Lets the earliest group that waits at a collective go on without the lanes that cannot come.
bool ReleaseCollective(Warp& warp) {
  for (Group& group : warp.groups) {
    if (group.barrier != kCollective) continue;
    group.barrier = -1;
    return true;
  }
  return false;
}

/// The group to run: the earliest that does not wait; a sibling's turn comes when the first one spins.
int PickGroup(Warp& warp) {
  int first = -1;
  int last = -1;
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    if (warp.groups[i].barrier >= 0) continue;
    if (first < 0) first = static_cast<int>(i);
    last = static_cast<int>(i);
  }
  if (warp.spins > kSpinLimit && last != first) {
    warp.spins = 0;
    return last;
  }
  return first;
}

uint32_t Limit(const Warp& warp, size_t running) {
  uint32_t limit = ~0u;
  for (size_t i = 0; i < warp.groups.size(); ++i) {
    if (i != running && warp.groups[i].barrier < 0 && warp.groups[i].pc > warp.groups[running].pc)
      limit = std::min(limit, warp.groups[i].pc);
  }
  return limit;
}

void CountDependence(Exec& x, const Op& op) {
  Warp& warp = *x.warp;
  if (warp.pending_loads.empty()) return;
  const auto pending = [&](int32_t slot) {
    return slot >= 0 && std::ranges::find(warp.pending_loads, slot) != warp.pending_loads.end();
  };
  bool waits = std::ranges::any_of(op.src, pending);
  const bool reads_list = op.run != nullptr && op.list_size > 0;
  for (int i = 0; reads_list && !waits && i < op.list_size; ++i)
    waits = pending(x.kernel->lists[op.list + static_cast<size_t>(i)]);
  if (!waits) return;
  ++x.counts.dependent_load_rounds;
  warp.pending_loads.clear();
}

/// Runs the current warp until all its groups wait or have exited, or its slice is over. False = nothing could run.
bool RunWarp(Exec& x) {
  Warp& warp = *x.warp;
  const Op* const ops = x.kernel->ops.data();
  uint32_t left = kSlice;
  bool ran = false;
  while (left > 0 && !x.stop) {
    const int picked = PickGroup(warp);
    if (picked < 0) {
      if (ReleaseCollective(warp)) continue;
      return ran;
    }
    ran = true;
    auto index = static_cast<size_t>(picked);
    uint32_t limit = Limit(warp, index);
    uint32_t pc = warp.groups[index].pc;
    const uint32_t mask = warp.groups[index].mask;
    bool regroup = false;
    while (!regroup && left > 0 && !x.stop) {
      if (pc == limit) break;
      const Op& op = ops[pc];
      --left;
      uint32_t active = mask;
      if (op.guard >= 0) active &= *x.Slot(op.guard) ^ (op.guard_negated ? ~0u : 0u);
      ++x.executed[pc];
      x.lanes[pc] += static_cast<uint64_t>(std::popcount(active));
      if (op.flow == Flow::kNone) {
        if (x.count) CountDependence(x, op);
        if (active != 0) op.run(x, op, active);
        if (x.count && x.loads_pending) {
          if (op.list_size > 0)
            warp.pending_loads.insert(warp.pending_loads.end(), x.kernel->lists.begin() + op.list,
                                      x.kernel->lists.begin() + op.list + op.list_size);
          x.loads_pending = false;
        }
        ++pc;
        continue;
      }
      switch (op.flow) {
        case Flow::kBranch: {
          ++x.counts.branches;
          if (op.target <= pc && active != 0) warp.spins = warp.groups.size() > 1 ? warp.spins + 1 : 0;
          if (active == mask) {
            pc = op.target;
            // Going back, others may now be ahead: their places bound the run again.
            warp.groups[index].pc = pc;
            limit = Limit(warp, index);
            if (warp.groups.size() > 1) regroup = true;
          } else if (active == 0) {
            ++pc;
          } else {
            ++x.counts.divergent_branches;
            warp.groups[index].mask = mask & ~active;
            warp.groups[index].pc = pc + 1;
            warp.groups.push_back({op.target, active, -1, nullptr});
            pc = pc + 1;
            regroup = true;
          }
          break;
        }
        case Flow::kBranchIndexed: {
          const uint32_t* selector = x.Source(op.src[0]);
          warp.groups[index].mask = mask & ~active;
          warp.groups[index].pc = pc + 1;
          for (uint32_t m = active; m != 0; m &= m - 1) {
            const int l = std::countr_zero(m);
            if (selector[l] >= op.imm) {
              Report(x, op, Hazard::Kind::kTrap, l, "indexed branch outside its table");
              break;
            }
            warp.groups.push_back(
                {static_cast<uint32_t>(x.kernel->lists[op.list + selector[l]]), 1u << l, -1, nullptr});
          }
          pc = pc + 1;
          regroup = true;
          break;
        }
        case Flow::kExit:
          warp.alive &= ~active;
          x.alive_threads -= static_cast<uint64_t>(std::popcount(active));
          warp.groups[index].mask = mask & ~active;
          ++pc;
          regroup = true;
          if (active != 0) {
            warp.groups[index].pc = pc;
            CheckBarriers(x);
          }
          break;
        case Flow::kBarrier:
          ++x.counts.barriers;
          if (active == 0) {
            ++pc;
            break;
          }
          if (active == mask && warp.groups.size() > 1) {
            warp.groups[index].pc = pc;
            if (WaitsForSiblings(warp, index, pc)) {
              warp.groups[index].barrier = kCollective;
              Normalise(warp);
              goto next_group;
            }
            active = warp.groups[index].mask;
          }
          ++pc;
          warp.groups[index].pc = pc;
          if (active != warp.groups[index].mask) {
            warp.groups[index].mask = mask & ~active;
            warp.groups.push_back({pc, active, -1, nullptr});
            index = warp.groups.size() - 1;
          }
          Arrive(x, op, warp.groups[index], active);
          Normalise(warp);
          goto next_group;
        case Flow::kWarpSync:
          ++pc;
          if (active == 0) break;
          warp.groups[index].pc = pc;
          if (active == mask && (x.Source(op.src[0])[std::countr_zero(mask)] & warp.alive & ~mask) == 0) {
            ++warp.sync_epoch;
            break;
          }
          ArriveWarp(x, op, index, active);
          goto next_group;
        case Flow::kCollective:
          if (active != 0 && active == mask && warp.groups.size() > 1) {
            warp.groups[index].pc = pc;
            if (MustWait(x, op, index, pc)) {
              warp.groups[index].barrier = kCollective;
              Normalise(warp);
              goto next_group;
            }
            if (warp.groups[index].mask != mask) {  // others had waited here: start again with them
              Normalise(warp);
              goto next_group;
            }
          }
          if (x.count) CountDependence(x, op);
          if (active != 0) op.run(x, op, active);
          ++pc;
          break;
        case Flow::kTrap:
          if (active != 0) Report(x, op, Hazard::Kind::kTrap, std::countr_zero(active), "the kernel trapped");
          ++pc;
          break;
        case Flow::kNone:
          break;
      }
    }
    if (index < warp.groups.size()) warp.groups[index].pc = pc;
    Normalise(warp);
    if (pc == limit) warp.spins = 0;
  next_group:;
  }
  return ran;
}

void ReportDeadlock(Exec& x) {
  for (Warp& warp : x.warps) {
    for (const Group& group : warp.groups) {
      if (group.mask == 0 || group.barrier < 0) continue;
      x.warp = &warp;
      const Op& op = x.kernel->ops[group.pc - 1];
      const std::string which =
          group.barrier == kWarpBarrier ? "a warp-level barrier" : "barrier " + std::to_string(group.barrier);
      const uint32_t arrived = group.barrier == kWarpBarrier ? static_cast<uint32_t>(std::popcount(group.mask))
                                                             : x.barriers[static_cast<size_t>(group.barrier)].arrived;
      return Report(x, op, Hazard::Kind::kDeadlock, std::countr_zero(group.mask),
                    "waits for ever at " + which + ": " + std::to_string(arrived) + " of " +
                        std::to_string(x.alive_threads) + " threads arrived");
    }
  }
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
  if (x.check) {
    std::ranges::fill(x.shadow, SharedShadow{});
    for (auto& pending : x.pending) pending.clear();
    std::ranges::fill(x.copy_group, 0u);
  }
  for (Warp& warp : x.warps) {
    const uint32_t first = warp.index * kLanes;
    const uint32_t lanes = std::min<uint32_t>(kLanes, x.threads - first);
    warp.alive = lanes == kLanes ? ~0u : (1u << lanes) - 1;
    warp.groups.assign(1, Group{0, warp.alive, -1, nullptr});
    warp.sync_epoch = 1;
    warp.spins = 0;
    warp.pending_loads.clear();
  }
}

}  // namespace

void Report(Exec& x, const Op& op, Hazard::Kind kind, int lane, const std::string& what) {
  x.stop = true;
  if (x.hazards.size() >= kMaxHazards) return;
  Hazard hazard;
  hazard.kind = kind;
  hazard.kernel = x.kernel->function->name;
  const std::string file = x.launch->module->SourceFile(op.source_file);
  const size_t slash = file.rfind('/');
  hazard.where = op.source_line ? (slash == std::string::npos ? file : file.substr(slash + 1)) + ":" +
                                      std::to_string(op.source_line)
                                : "PTX line " + std::to_string(op.line);
  hazard.detail =
      "block " + std::to_string(x.block) + ", thread " + std::to_string(x.warp ? x.ThreadOf(lane) : 0) + " " + what;
  x.hazards.push_back(std::move(hazard));
}

void Prepare(Exec& x, const Launch& launch) {
  x.launch = &launch;
  x.kernel = launch.kernel;
  x.check = launch.check;
  x.count = launch.count;
  x.threads = static_cast<uint32_t>(launch.shape.block.Count());
  const uint32_t warps = (x.threads + kLanes - 1) / kLanes;
  x.warps.resize(warps);
  for (uint32_t i = 0; i < warps; ++i) {
    x.warps[i].index = i;
    x.warps[i].registers.assign(static_cast<size_t>(launch.kernel->register_slots) * kLanes, 0);
  }
  const size_t shared = launch.kernel->dynamic_shared_offset + launch.shape.dynamic_shared_bytes;
  x.shared.resize(std::max<size_t>(launch.kernel->static_shared,
                                   launch.shape.dynamic_shared_bytes ? shared : launch.kernel->static_shared));
  x.local.resize(launch.kernel->function->local_bytes * x.threads);
  if (x.check) {
    x.shadow.resize((x.shared.size() + 3) / 4 + 8);
    x.pending.resize(x.threads);
    x.copy_group.resize(x.threads);
  }
  x.executed.assign(launch.kernel->ops.size(), 0);
  x.lanes.assign(launch.kernel->ops.size(), 0);
}

void RunBlock(Exec& x, uint64_t block, double deadline, uint64_t budget, LaunchOutcome& outcome) {
  InitialiseBlock(x, block);
  uint64_t slices = 0;
  while (!x.stop) {
    bool any_alive = false;
    bool any_ran = false;
    for (Warp& warp : x.warps) {
      if (warp.alive == 0) continue;
      any_alive = true;
      x.warp = &warp;
      any_ran |= RunWarp(x);
      if (x.stop) break;
    }
    if (!any_alive) break;
    if (x.stop) break;
    if (!any_ran) {
      ReportDeadlock(x);
      break;
    }
    slices += x.warps.size();
    if (slices * kSlice / 4 > budget || (slices % 64 < x.warps.size() && SystemClock().Now() > deadline)) {
      outcome.kind = LaunchOutcome::Kind::kTimeout;
      outcome.message = "block " + std::to_string(block) + " did not end within its limit";
      return;
    }
  }
  ++x.counts.blocks;
  x.counts.warps += x.warps.size();
  if (x.count) {
    x.counts.unique_load_sectors += x.load_sectors.size();
    x.counts.unique_store_sectors += x.store_sectors.size();
    x.load_sectors.clear();
    x.store_sectors.clear();
  }
}

void CollectCounts(const Exec& x, Counts& counts) {
  counts += x.counts;
  for (size_t i = 0; i < x.executed.size(); ++i) {
    const auto op_class = static_cast<size_t>(x.kernel->ops[i].op_class);
    counts.warp_instructions[op_class] += x.executed[i];
    counts.thread_instructions[op_class] += x.lanes[i];
  }
}

void MoveUnpack(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t* a = x.Source(op.src[0]);
  const int total = op.width * op.list_size;
  for (int i = 0; i < op.list_size; ++i) {
    const int32_t slot = x.kernel->lists[op.list + static_cast<size_t>(i)];
    if (slot == INT32_MIN) continue;
    uint32_t* d = x.Slot(slot);
    ForLanes(mask, [&](int l) {
      const uint64_t whole = total == 8 ? Lane<uint64_t>::Get(a, l) : a[l];
      const uint64_t part = whole >> (8 * op.width * i);
      d[l] = op.width == 4 ? static_cast<uint32_t>(part) : static_cast<uint32_t>(part & ((1u << (8 * op.width)) - 1));
    });
  }
}

void MovePack(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const bool wide = op.width * op.list_size == 8;
  ForLanes(mask, [&](int l) {
    uint64_t whole = 0;
    for (int i = 0; i < op.list_size; ++i) {
      const uint64_t part = x.Source(x.kernel->lists[op.list + static_cast<size_t>(i)])[l];
      whole |= (op.width == 4 ? part : part & ((1u << (8 * op.width)) - 1)) << (8 * op.width * i);
    }
    if (wide)
      Lane<uint64_t>::Set(d, l, whole);
    else
      d[l] = static_cast<uint32_t>(whole);
  });
}

void ReadSpecial(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const LaunchShape& shape = x.launch->shape;
  const auto value = [&](uint32_t thread, int lane) -> uint64_t {
    const Dim3& b = shape.block;
    switch (op.imm) {
      case 0:
        return thread % b.x;
      case 1:
        return thread / b.x % b.y;
      case 2:
        return thread / b.x / b.y;
      case 3:
        return b.x;
      case 4:
        return b.y;
      case 5:
        return b.z;
      case 6:
        return x.ctaid[0];
      case 7:
        return x.ctaid[1];
      case 8:
        return x.ctaid[2];
      case 9:
        return shape.grid.x;
      case 10:
        return shape.grid.y;
      case 11:
        return shape.grid.z;
      case 12:
        return static_cast<uint64_t>(lane);
      case 13:
        return x.warp->index;
      case 14:
        return x.warps.size();
      case 15:
        return 0;
      case 16:
        return 1;
      case 17:
      case 18:
      case 19:
      case 36:
        return x.clock += 4;
      case 20:
        return 1u << lane;
      case 21:
        return (2ull << lane) - 1;
      case 22:
        return (1u << lane) - 1;
      case 23:
        return static_cast<uint32_t>(~((1u << lane) - 1));
      case 24:
        return static_cast<uint32_t>(~((2ull << lane) - 1));
      case 25:
        return shape.dynamic_shared_bytes;
      case 26:
        return x.shared.size();
      case 28:
      case 35:
        return 1;
      case 33:
        return x.ctaid[0];
      case 34:
        return shape.grid.x;
      default:
        return 0;
    }
  };
  ForLanes(mask, [&](int l) {
    const uint64_t v = value(x.ThreadOf(l), l);
    if (op.width == 8)
      Lane<uint64_t>::Set(d, l, v);
    else
      d[l] = static_cast<uint32_t>(v);
  });
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
