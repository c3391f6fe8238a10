// Packing moves and the special registers.
#include <algorithm>

#include "atunner/vgpu/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

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

namespace {
/// Whether the lanes of a warp find different values in a special register.
bool DiffersByLane(uint64_t number) {
  return number <= 2 || number == 12 || (number >= 17 && number <= 24) || number == 36;
}
}  // namespace

void ReadSpecial(Exec& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  const LaunchShape& shape = x.launch->shape;
  const Dim3& cluster = x.launch->cluster;
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
      case 54:
        return x.shared.size() - x.kernel->reserved_shared;
      case 27:
        return x.launch->cluster.Count() > 1 ? x.rank : 0;
      case 28:
        return x.launch->cluster.Count();
      case 29:
        return x.ctaid[0] % cluster.x;
      case 30:
        return x.ctaid[1] % cluster.y;
      case 31:
        return x.ctaid[2] % cluster.z;
      case 33:
        return x.ctaid[0] / cluster.x;
      case 34:
        return shape.grid.x / cluster.x;
      case 35:
        return cluster.x;
      case 37:
        return x.ctaid[1] / cluster.y;
      case 38:
        return x.ctaid[2] / cluster.z;
      case 39:
        return shape.grid.y / cluster.y;
      case 40:
        return shape.grid.z / cluster.z;
      case 41:
        return cluster.y;
      case 42:
        return cluster.z;
      case 43:
        return x.launch->cluster.Count() > 1;
      case 44:
        return x.launch->grid_workspace >> 32;
      case 45:
        return x.launch->grid_workspace & 0xffffffffu;
      case 46:
      case 47:
        return x.clock >> 32;
      case 48:
        return kLanes;
      case 49:
      case 52:
        return x.reserved_shared;
      case 50:
      case 51:
        return x.shared.size();
      case 53:
        return x.reserved_shared + kReservedShared / 2;
      default:
        return 0;
    }
  };
  const bool alike = !DiffersByLane(op.imm);
  const uint64_t common = alike ? value(0, 0) : 0;
  ForLanes(mask, [&](int l) {
    const uint64_t v = alike ? common : value(x.ThreadOf(l), l);
    if (op.width == 8)
      Lane<uint64_t>::Set(d, l, v);
    else
      d[l] = static_cast<uint32_t>(v);
  });
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
