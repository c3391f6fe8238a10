// Loads and stores.
#include <algorithm>

#include "atunner/vgpu/access.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

void StoreRegister(uint32_t* slot, int lane, uint64_t raw, const Op& op, bool wide) {
  if (op.sign_extend) {
    const int shift = 64 - 8 * op.width;
    raw = static_cast<uint64_t>(static_cast<int64_t>(raw << shift) >> shift);
  }
  if (wide)
    Lane<uint64_t>::Set(slot, lane, raw);
  else
    slot[lane] = static_cast<uint32_t>(raw);
}

/// Slot of element `i` of a vector access; imm2 bit i of `variant` says that it is 64 bits wide.
int32_t ElementSlot(const Exec& x, const Op& op, int i) {
  return x.kernel->lists[static_cast<size_t>(op.list) + static_cast<size_t>(i)];
}

void ReadConverted(Exec& x, const Op& op, int lane, const std::byte* from) {
  for (int i = 0; i < op.list_size; ++i) {
    const int32_t slot = ElementSlot(x, op, i);
    if (slot == INT32_MIN) continue;  // the sink `_`
    uint64_t raw = 0;
    std::memcpy(&raw, from + i * op.width, op.width);
    StoreRegister(x.Slot(slot), lane, raw, op, op.variant & 1);
  }
}

void Load(Exec& x, const Op& op, uint32_t mask) {
  if (op.relaxed) x.polled = true;
  const uint32_t bytes = uint32_t{op.width} * op.list_size;
  uint64_t addresses[kLanes] = {};
  Space space = op.space;
  uint32_t global_mask = 0;
  uint32_t shared_mask = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint64_t address = AddressOf(x, op, l);
    space = Resolve(op.space, address);
    addresses[l] = address;
    if (space != Space::kParam && !CheckAligned(x, op, l, address, bytes)) return;
    const bool global = space == Space::kGlobal || space == Space::kConst;
    const std::byte* from = global ? GlobalPointer(x, op, l, address, bytes, "load")
                                   : WindowPointer(x, op, l, space, address, bytes, "load");
    if (from == nullptr) return;
    if (space == Space::kShared) {
      shared_mask |= 1u << l;
      if (x.check) ShadowRead(x, op, l, address, bytes);
    }
    if (space == Space::kGlobal) global_mask |= 1u << l;
    ReadConverted(x, op, l, from);
  }
  if (global_mask) x.loads_pending = true;
  if (op.fence) OrderAll(x);
  if (!x.count) return;
  if (global_mask) CountGlobal(x, addresses, global_mask, bytes, false);
  if (shared_mask) CountShared(x, addresses, shared_mask, bytes);
  if (space == Space::kLocal) ++x.counts.local_requests;
}

/// ld.global of 32-bit or wider elements with every lane active: one bounds test for the warp.
template <int kWidth>
void LoadGlobalFast(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t bytes = uint32_t{kWidth} * op.list_size;
  if (mask != ~0u || x.count) return Load(x, op, mask);
  uint64_t addresses[kLanes];
  uint64_t low = ~uint64_t{0};
  uint64_t high = 0;
  uint64_t bits = 0;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t a = AddressOf(x, op, l);
    addresses[l] = a;
    low = std::min(low, a);
    high = std::max(high, a);
    bits |= a;
  }
  if ((bits & (bytes - 1)) != 0 || !x.last_range.Contains(low, high + bytes)) return Load(x, op, mask);
  for (int i = 0; i < op.list_size; ++i) {
    const int32_t slot = ElementSlot(x, op, i);
    if (slot == INT32_MIN) continue;
    uint32_t* d = x.Slot(slot);
    for (int l = 0; l < kLanes; ++l) {
      std::memcpy(d + l * (kWidth / 4), reinterpret_cast<const char*>(addresses[l]) + i * kWidth, kWidth);
    }
  }
}

void Store(Exec& x, const Op& op, uint32_t mask) {
  if (op.fence) OrderAll(x);
  const uint32_t bytes = uint32_t{op.width} * op.list_size;
  uint64_t addresses[kLanes] = {};
  uint32_t global_mask = 0;
  uint32_t shared_mask = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint64_t address = AddressOf(x, op, l);
    const Space space = Resolve(op.space, address);
    addresses[l] = address;
    if (!CheckAligned(x, op, l, address, bytes)) return;
    std::byte* to = space == Space::kGlobal ? GlobalPointer(x, op, l, address, bytes, "store")
                                            : WindowPointer(x, op, l, space, address, bytes, "store");
    if (to == nullptr) return;
    std::byte value[32];
    for (int i = 0; i < op.list_size; ++i) {
      const uint32_t* s = x.Source(ElementSlot(x, op, i));
      const uint64_t raw = op.width == 8 ? Lane<uint64_t>::Get(s, l) : s[l * (op.variant & 1 ? 2 : 1)];
      std::memcpy(value + i * op.width, &raw, op.width);
    }
    if (space == Space::kShared) {
      shared_mask |= 1u << l;
      if (x.check)
        ShadowWrite(x, op, l, address, bytes, std::memcmp(to, value, bytes) == 0 && Initialised(x, address), false);
    }
    if (space == Space::kGlobal) global_mask |= 1u << l;
    std::memcpy(to, value, bytes);
  }
  if (!x.count) return;
  if (global_mask) CountGlobal(x, addresses, global_mask, bytes, true);
  if (shared_mask) CountShared(x, addresses, shared_mask, bytes);
  if (!global_mask && !shared_mask) ++x.counts.local_requests;
}

void NoEffect(Exec&, const Op&, uint32_t) {}

}  // namespace

Handler MemoryHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "ld" || opcode == "ldu") {
    if (op.space == Space::kGlobal && op.width == 4 && !(op.variant & 1)) return LoadGlobalFast<4>;
    if (op.space == Space::kGlobal && op.width == 8) return LoadGlobalFast<8>;
    return Load;
  }
  if (opcode == "st") return Store;
  return NoEffect;  // prefetch, prefetchu, discard, applypriority: hints
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
