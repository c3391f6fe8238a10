// Addresses and bounds of accesses, and synchronisation of the accesses of blocks.
#include "atunner/vgpu/checks/access.h"

#include <algorithm>
#include <cstdio>

#include "atunner/vgpu/checks/cluster_shadow.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

std::string Hex(uint64_t v) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

namespace {
Fault FaultAt(const Op& op, uint64_t address) {
  Fault fault{op.space, address, {}};
  fault.space = Resolve(op.space, fault.address);
  return fault;
}
}  // namespace

bool CheckAligned(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  if ((address & (bytes - 1)) == 0) return true;
  Report(x, op, Hazard::Kind::kMisaligned, lane,
         "address " + Hex(address) + " is not a multiple of " + std::to_string(bytes),
         FaultAt(op, address));
  return false;
}

std::byte* FindGlobal(BlockState& x, const Op& op, int lane, uint64_t address, uint64_t bytes,
                      const char* verb) {
  const auto range = x.launch->memory->Find(address);
  if (!range || address + bytes < address || !range->Contains(address, address + bytes)) {
    Report(x, op, Hazard::Kind::kOutOfBounds, lane,
           std::string(verb) + " of " + std::to_string(bytes) + " bytes at " + Hex(address) + ", " +
               x.launch->memory->Describe(address),
           {Space::kGlobal, address, {}});
    return nullptr;
  }
  x.allocations.ranges[x.allocations.oldest++ % x.allocations.ranges.size()] = *range;
  return reinterpret_cast<std::byte*>(address);
}

const Range* RangeOf(const AllocationCache& allocations, uint64_t address) {
  const auto at = std::ranges::find_if(allocations.ranges, [&](const Range& range) {
    return address >= range.base && address < range.end;
  });
  return at == allocations.ranges.end() ? nullptr : &*at;
}

BlockState* SharedOwner(BlockState& x, const Op& op, int lane, uint64_t& address) {
  const uint64_t rank = address >> kRankShift;
  if (rank == 0) return &x;
  const uint64_t blocks = x.launch->cluster.Count();
  if (rank > blocks || rank > x.peers->members.size()) {
    Report(x, op, Hazard::Kind::kOutOfBounds, lane,
           "names shared memory of block " + std::to_string(rank - 1) + " of a cluster of " +
               std::to_string(blocks));
    return nullptr;
  }
  address &= (uint64_t{1} << kRankShift) - 1;
  if (rank == x.cluster.rank + 1) return &x;
  BlockState* owner = x.peers->members[rank - 1];
  if (x.checks.any) {
    PropagateClock(x, *owner);
    if (op.dst > 0 || op.list_written) PropagateClock(*owner, x);  // it looks at something there
  }
  if (owner->progress.alive_threads > 0) return owner;
  Report(x, op, Hazard::Kind::kOutOfBounds, lane,
         "reaches into shared memory of block " + std::to_string(rank - 1) +
             " of the cluster, which has ended");
  return nullptr;
}

std::byte* WindowPointer(BlockState& x, const Op& op, int lane, Space space, uint64_t address,
                         uint64_t bytes, const char* verb) {
  const auto inside = [&](uint64_t size) {
    return address + bytes <= size && address + bytes >= address;
  };
  switch (space) {
    case Space::kShared: {
      if (inside(x.shared.bytes.size())) return x.shared.bytes.data() + address;
      BlockState* owner = SharedOwner(x, op, lane, address);
      if (owner == nullptr) return nullptr;
      if (inside(owner->shared.bytes.size())) return owner->shared.bytes.data() + address;
      Report(x, op, Hazard::Kind::kOutOfBounds, lane,
             std::string(verb) + " of " + std::to_string(bytes) + " bytes at shared address " +
                 Hex(address) + ", the block has " + std::to_string(x.shared.bytes.size()),
             {Space::kShared, address, {}});
      return nullptr;
    }
    case Space::kLocal: {
      const uint64_t per_thread = x.kernel->local_bytes;
      if (inside(per_thread)) return x.local.bytes.data() + x.ThreadOf(lane) * per_thread + address;
      Report(x, op, Hazard::Kind::kOutOfBounds, lane,
             std::string(verb) + " at local address " + Hex(address) + ", the thread has " +
                 std::to_string(per_thread) + " bytes",
             {Space::kLocal, address, {}});
      return nullptr;
    }
    default:
      if (inside(x.launch->params.size()))
        return const_cast<std::byte*>(x.launch->params.data()) + address;
      Report(x, op, Hazard::Kind::kOutOfBounds, lane,
             std::string(verb) + " outside the parameters");
      return nullptr;
  }
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
