// Operations of the lanes of a warp with each other: shuffles, votes, matches, reductions. Fences.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/pending.h"
#include "atunner/vgpu/checks/shuffled_values.h"
#include "atunner/vgpu/checks/synchronisation.h"
#include "atunner/vgpu/hardware/surroundings.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/lanes.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

/// Every executing lane must be named in the mask of a .sync instruction.
bool CheckMember(BlockState& x, const Op& op, uint32_t mask, uint32_t members) {
  if ((mask & ~members) == 0) return true;
  Report(x, op, Hazard::Kind::kInvalidShuffle, std::countr_zero(mask & ~members),
         "executes a .sync instruction whose mask does not name it");
  return false;
}

enum ShuffleMode : uint8_t { kUp, kDown, kButterfly, kIndex };

template <uint8_t kMode>
void Shuffle(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t members = x.Source(op.src[3])[std::countr_zero(mask)];
  if (x.checks.sync && !CheckMember(x, op, mask, members)) return;
  const uint32_t* b = x.Source(op.src[1]);
  const uint32_t* c = x.Source(op.src[2]);
  int sources[kLanes];
  uint32_t valid[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    const int segment = static_cast<int>((c[l] >> 8) & 31u);
    const int limit = (l & segment) | (static_cast<int>(c[l] & 31u) & ~segment);
    const int delta = static_cast<int>(b[l] & 31u);
    const int from = kMode == kUp          ? l - delta
                     : kMode == kDown      ? l + delta
                     : kMode == kButterfly ? l ^ delta
                                           : (l & segment) | (delta & ~segment);
    const bool inside = kMode == kUp ? from >= limit : from <= limit;
    sources[l] = inside ? from : l;
    valid[l] = inside ? 1u << l : 0u;
  }
  uint32_t absent = 0;  // lanes whose source does not take part
  if (x.checks.sync && mask != ~0u)
    ForLanes(mask, [&](int l) { absent |= (~mask >> sources[l] & 1u) << l; });
  if (absent != 0) NoteAbsentSources(x, op, absent, sources);
  if (x.shuffled.tracked) MoveShuffled(x, op, mask, absent, sources);
  uint32_t values[kLanes];
  std::memcpy(values, x.Source(op.src[0]), sizeof values);
  Assign<uint32_t>(x.Slot(op.dst), mask, [&](int l) { return values[sources[l]]; });
  if (op.dst2 >= 0) {
    uint32_t inside = 0;
    for (uint32_t lane : valid) inside |= lane;
    uint32_t* p = x.Slot(op.dst2);
    *p = (*p & ~mask) | (inside & mask);
  }
  ++x.warp->sync_epoch;
}

Handler ShuffleHandler(const Form& form) {
  if (!form.Has("sync")) return nullptr;
  if (form.Has("up")) return Shuffle<kUp>;
  if (form.Has("down")) return Shuffle<kDown>;
  if (form.Has("bfly")) return Shuffle<kButterfly>;
  return form.Has("idx") ? Shuffle<kIndex> : nullptr;
}

enum VoteMode : uint8_t { kAll, kAny, kUni, kBallot };

void Vote(BlockState& x, const Op& op, uint32_t mask) {
  const uint32_t members = x.Source(op.src[1])[std::countr_zero(mask)];
  if (x.checks.sync && !CheckMember(x, op, mask, members)) return;
  const uint32_t p = (*x.Source(op.src[0]) ^ (op.imm ? ~0u : 0u)) & mask;
  uint32_t* d = x.Slot(op.dst);
  if (op.variant == kBallot) {
    ForLanes(mask, [&](int l) { d[l] = p; });
  } else {
    const bool holds = op.variant == kAll   ? p == mask
                       : op.variant == kAny ? p != 0
                                            : (p == 0 || p == mask);
    *d = (*d & ~mask) | (holds ? mask : 0);
  }
  ++x.warp->sync_epoch;
}

template <class T, bool kAllEqual>
void Match(BlockState& x, const Op& op, uint32_t mask) {
  if (x.checks.sync && !CheckMember(x, op, mask, x.Source(op.src[1])[std::countr_zero(mask)]))
    return;
  const uint32_t* a = x.Source(op.src[0]);
  T values[kLanes];
  ForLanes(mask, [&](int l) { values[l] = Lane<T>::Get(a, l); });
  uint32_t* d = x.Slot(op.dst);
  const int first = std::countr_zero(mask);
  bool all = true;
  ForLanes(mask, [&](int l) { all = all && values[l] == values[first]; });
  ForLanes(mask, [&](int l) {
    uint32_t same = 0;
    for (uint32_t m = mask; m != 0; m &= m - 1) {
      const int k = std::countr_zero(m);
      if (values[k] == values[l]) same |= 1u << k;
    }
    d[l] = kAllEqual ? (all ? mask : 0u) : same;
  });
  if (op.dst2 >= 0) {
    uint32_t* p = x.Slot(op.dst2);
    *p = (*p & ~mask) | (all ? mask : 0u);
  }
  ++x.warp->sync_epoch;
}

enum ReduceMode : uint8_t { kReduceAdd, kReduceMin, kReduceMax, kReduceAnd, kReduceOr, kReduceXor };

template <class T>
void Redux(BlockState& x, const Op& op, uint32_t mask) {
  if (x.checks.sync && !CheckMember(x, op, mask, x.Source(op.src[1])[std::countr_zero(mask)]))
    return;
  const uint32_t* a = x.Source(op.src[0]);
  T r = Lane<T>::Get(a, std::countr_zero(mask));
  for (uint32_t m = mask & (mask - 1); m != 0; m &= m - 1) {
    const T v = Lane<T>::Get(a, std::countr_zero(m));
    switch (op.variant) {
      case kReduceAdd:
        r = static_cast<T>(static_cast<uint32_t>(r) + static_cast<uint32_t>(v));
        break;
      case kReduceMin:
        r = std::min(r, v);
        break;
      case kReduceMax:
        r = std::max(r, v);
        break;
      case kReduceAnd:
        r = static_cast<T>(r & v);
        break;
      case kReduceOr:
        r = static_cast<T>(r | v);
        break;
      default:
        r = static_cast<T>(r ^ v);
    }
  }
  uint32_t* d = x.Slot(op.dst);
  ForLanes(mask, [&](int l) { Lane<T>::Set(d, l, r); });
  ++x.warp->sync_epoch;
}

/// redux.sync of floats. NaN is ignored if there is a number, unless .NaN is given. Bits of the
/// variant: 0 = min, 1 = abs, 2 = NaN.
void ReduxFloat(BlockState& x, const Op& op, uint32_t mask) {
  if (x.checks.sync && !CheckMember(x, op, mask, x.Source(op.src[1])[std::countr_zero(mask)]))
    return;
  const uint32_t* a = x.Source(op.src[0]);
  float r = std::numeric_limits<float>::quiet_NaN();
  bool nan = false;
  ForLanes(mask, [&](int l) {
    float v = Lane<float>::Get(a, l);
    if (op.variant & 2) v = std::fabs(v);
    nan |= std::isnan(v);
    if (std::isnan(v)) return;
    const bool equal = v == r;  // -0 counts as less than +0
    const bool less = equal ? std::signbit(v) && !std::signbit(r) : v < r;
    const bool more = equal ? !std::signbit(v) && std::signbit(r) : v > r;
    if (std::isnan(r) || (op.variant & 1 ? less : more)) r = v;
  });
  if (std::isnan(r) || ((op.variant & 4) && nan)) r = std::bit_cast<float>(0x7fffffffu);
  uint32_t* d = x.Slot(op.dst);
  ForLanes(mask, [&](int l) { Lane<float>::Set(d, l, r); });
  ++x.warp->sync_epoch;
}

void ActiveMask(BlockState& x, const Op& op, uint32_t mask) {
  uint32_t* d = x.Slot(op.dst);
  ForLanes(mask, [&](int l) { d[l] = mask; });
}

void Elect(BlockState& x, const Op& op, uint32_t mask) {
  if (x.checks.sync && !CheckMember(x, op, mask, x.Source(op.src[0])[std::countr_zero(mask)]))
    return;
  const auto leader = static_cast<uint32_t>(std::countr_zero(mask));
  if (op.dst != INT32_MIN) {
    uint32_t* d = x.Slot(op.dst);
    ForLanes(mask, [&](int l) { d[l] = leader; });
  }
  if (op.dst2 >= 0) {
    uint32_t* p = x.Slot(op.dst2);
    *p = (*p & ~mask) | (1u << leader);
  }
}

void Fence(BlockState& x, const Op&, uint32_t mask) {
  NoteFence(x, mask, false);
  OrderCluster(x);
  SeeAll(x);
}
/// A fence of block scope: it does not order accesses for other blocks.
void BlockFence(BlockState& x, const Op&, uint32_t mask) {
  NoteFence(x, mask, true);
  SeeAll(x);
}
void OrderOnly(BlockState& x, const Op&, uint32_t) { ++x.shadow.epoch; }
void AsyncProxyFence(BlockState& x, const Op&, uint32_t) {
  x.async.proxy_epoch = std::max(x.async.proxy_epoch, x.warp->seen_epoch);
  x.warp->proxy_epoch = ++x.shadow.epoch;
}

void NoEffect(BlockState&, const Op&, uint32_t) {}

/// setmaxnreg changes nothing here, but all four warps of the group must execute it, with a number
/// that there is.
Handler RegisterCount(const Form& form, Op& op) {
  const auto& operands = form.instruction->operands;
  const uint64_t registers = operands.size() == 1 ? operands[0].bits : 0;
  if (registers < 24 || registers > 256 || registers % 8 != 0) return nullptr;
  op.flow = Flow::kAligned;
  op.target = kWholeGroup;
  return NoEffect;
}

/// Cache policies are opaque, and hints are not followed.
void CachePolicy(BlockState& x, const Op& op, uint32_t mask) {
  ForLanes(mask, [&](int l) { Lane<uint64_t>::Set(x.Slot(op.dst), l, 0); });
}

uint8_t IndexOf(const Form& form, std::initializer_list<std::string_view> names) {
  uint8_t i = 0;
  for (std::string_view name : names) {
    if (form.Has(name)) return i;
    ++i;
  }
  return 0xff;
}

}  // namespace

Handler WarpHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "shfl") return ShuffleHandler(form);
  if (opcode == "vote") {
    op.variant = IndexOf(form, {"all", "any", "uni", "ballot"});
    return form.Has("sync") && op.variant != 0xff ? Vote : nullptr;
  }
  if (opcode == "match") {
    if (form.Has("any"))
      return ptx::BitsOf(form.type) == 64 ? Match<uint64_t, false> : Match<uint32_t, false>;
    return ptx::BitsOf(form.type) == 64 ? Match<uint64_t, true> : Match<uint32_t, true>;
  }
  if (opcode == "redux") {
    op.variant = IndexOf(form, {"add", "min", "max", "and", "or", "xor"});
    if (op.variant == 0xff) return nullptr;
    if (form.type == Type::kF32) {
      if (op.variant != kReduceMin && op.variant != kReduceMax) return nullptr;
      op.variant = static_cast<uint8_t>((op.variant == kReduceMin) | form.Has("abs") << 1 |
                                        form.Has("NaN") << 2);
      return ReduxFloat;
    }
    return form.type == Type::kS32 ? Redux<int32_t> : Redux<uint32_t>;
  }
  if (opcode == "activemask") return ActiveMask;
  if (opcode == "elect") return Elect;
  if (opcode == "fence" && form.Has("proxy"))
    return form.Has("async") ? AsyncProxyFence : OrderOnly;
  if (opcode == "fence" && form.Has("mbarrier_init")) return OrderOnly;
  if (opcode == "membar" || opcode == "fence") return form.Has("cta") ? BlockFence : Fence;
  if (opcode == "nanosleep") return Sleep;
  if (opcode == "griddepcontrol" || opcode == "pmevent") return NoEffect;
  if (opcode == "createpolicy") return CachePolicy;
  if (opcode == "setmaxnreg") return RegisterCount(form, op);
  return nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
