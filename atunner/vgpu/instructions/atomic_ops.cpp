// Atomics and reductions.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <mutex>

#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/checks/cluster_shadow.h"
#include "atunner/vgpu/checks/synchronisation.h"
#include "atunner/vgpu/instructions/bulk.h"
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

enum class AtomicOp : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor, kExch, kCas, kInc, kDec };

template <class T>
T Combine(AtomicOp what, T old, T b, T c) {
  switch (what) {
    case AtomicOp::kAdd:
      if constexpr (std::is_floating_point_v<T>)
        return old + b;
      else
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                              static_cast<std::make_unsigned_t<T>>(b));
    case AtomicOp::kMin:
      return old < b ? old : b;
    case AtomicOp::kMax:
      return old > b ? old : b;
    case AtomicOp::kExch:
      return b;
    case AtomicOp::kCas:
      return old == b ? c : old;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (what) {
      case AtomicOp::kAnd:
        return static_cast<T>(old & b);
      case AtomicOp::kOr:
        return static_cast<T>(old | b);
      case AtomicOp::kXor:
        return static_cast<T>(old ^ b);
      case AtomicOp::kInc:
        return old >= b ? T{0} : static_cast<T>(old + 1);
      case AtomicOp::kDec:
        return old == 0 || old > b ? b : static_cast<T>(old - 1);
      default:
        break;
    }
  }
  return old;
}

/// Pairs of 16-bit floats, added half by half.
template <bool kBrain>
uint32_t AddPair(uint32_t old, uint32_t b) {
  uint32_t r = 0;
  for (int h = 0; h < 32; h += 16) {
    const auto x16 = static_cast<uint16_t>(old >> h);
    const auto y16 = static_cast<uint16_t>(b >> h);
    const uint16_t sum = kBrain ? FloatToBFloat16(BFloat16ToFloat(x16) + BFloat16ToFloat(y16))
                                : FloatToHalf(HalfToFloat(x16) + HalfToFloat(y16));
    r |= static_cast<uint32_t>(sum) << h;
  }
  return r;
}

template <class Bits, class F>
Bits Exchange(std::byte* at, bool global, F&& f) {
  auto* word = reinterpret_cast<Bits*>(at);
  if (!global) {
    const Bits old = *word;
    *word = f(old);
    return old;
  }
  std::atomic_ref<Bits> shared_word(*word);  // blocks run on several host threads
  Bits old = shared_word.load();
  while (!shared_word.compare_exchange_weak(old, f(old))) {
  }
  return old;
}

/// True if anything follows the writes to global memory.
bool NotesWrites(const BlockState& x) {
  return x.checks.track_stores || x.launch->options.log_writes || HasBlockFlags(x);
}

void CheckGlobalAtomic(BlockState& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  if (HasBlockFlags(x)) ReleaseFlags(x, lane, address, bytes);
  const auto what = static_cast<AtomicOp>(op.variant);
  if (what != AtomicOp::kExch) NoteGlobalRead(x, op, lane, address, bytes);
  NoteGlobalWrite(x, op, lane, address, bytes, nullptr, true);
}

/// What an atomic orders besides the accesses to its own word.
void Synchronise(BlockState& x, const Op& op, uint32_t lanes) {
  x.progress.polled = true;
  if (op.fence) {
    NoteFence(x, lanes, op.order.of_block);
    OrderCluster(x);
  }
  SeeAll(x);
  PropagateToCluster(x);
  AcquireInCluster(x);
}

template <class Bits, class F>
void AtomicLanes(BlockState& x, const Op& op, uint32_t mask, bool floats, F&& combine) {
  Synchronise(x, op, mask);
  std::array<uint64_t, kLanes> addresses;
  uint32_t in_memory = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint64_t address = AddressOf(x, op, l);
    const Space space = Resolve(op.space, address);
    if (!CheckAligned(x, op, l, address, sizeof(Bits))) return;
    const bool global = space == Space::kGlobal;
    std::byte* at = global ? GlobalPointer(x, op, l, address, sizeof(Bits), "atomic")
                           : WindowPointer(x, op, l, space, address, sizeof(Bits), "atomic");
    if (at == nullptr) return;
    if (space == Space::kShared && x.checks.any) {
      const bool wanted = (x.launch->options.groups & static_cast<uint8_t>(HazardGroup::kInit)) !=
                          0;
      if (wanted && !Initialised(x, address)) {
        return Report(
            x, op, Hazard::Kind::kUninitialisedShared, l,
            "atomic on shared address " + Hex(address) + " before anything was written there");
      }
      ShadowWrite(x, op, l, address, sizeof(Bits), false, true);
    }
    if (global && NotesWrites(x)) CheckGlobalAtomic(x, op, l, address, sizeof(Bits));
    const Bits b = Lane<Bits>::Get(x.Source(op.src[1]), l);
    const Bits c = Lane<Bits>::Get(x.Source(op.src[2]), l);
    const Bits old = Exchange<Bits>(at, global, [&](Bits v) { return combine(v, b, c); });
    if (global && op.order.polls) ObserveFlag(x, address, sizeof(Bits));
    if (op.dst != INT32_MIN) Lane<Bits>::Set(x.Slot(op.dst), l, old);
    if (global) {
      ++x.counting.total.global.atomics;
      addresses[static_cast<size_t>(l)] = address;
      in_memory |= 1u << l;
    }
  }
  if (in_memory != 0 && x.counting.enabled) CountAtomic(x, addresses.data(), in_memory, floats);
}

template <class T>
void Atomic(BlockState& x, const Op& op, uint32_t mask) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  const auto what = static_cast<AtomicOp>(op.variant);
  AtomicLanes<Bits>(x, op, mask, std::is_floating_point_v<T>, [what](Bits old, Bits b, Bits c) {
    return std::bit_cast<Bits>(
        Combine<T>(what, std::bit_cast<T>(old), std::bit_cast<T>(b), std::bit_cast<T>(c)));
  });
}
template <bool kBrain>
void AtomicPair(BlockState& x, const Op& op, uint32_t mask) {
  AtomicLanes<uint32_t>(x, op, mask, true,
                        [](uint32_t old, uint32_t b, uint32_t) { return AddPair<kBrain>(old, b); });
}

/// One 16-bit float.
template <bool kBrain>
void AtomicHalf(BlockState& x, const Op& op, uint32_t mask) {
  AtomicLanes<uint16_t>(x, op, mask, true, [](uint16_t old, uint16_t b, uint16_t) {
    return static_cast<uint16_t>(AddPair<kBrain>(old, b));
  });
}

/// Exchange or compare-and-swap of 128 bits. Not every host has such an atomic, so that a lock is
/// used.
void AtomicWide(BlockState& x, const Op& op, uint32_t mask) {
  static std::mutex mutex;
  struct Wide {
    uint64_t low, high;
    bool operator==(const Wide&) const = default;
  };
  const auto value = [&](int32_t slot, int l) {
    return Wide{Lane<uint64_t>::Get(x.Source(slot), l), Lane<uint64_t>::Get(x.Source(slot + 2), l)};
  };
  Synchronise(x, op, mask);
  ForLanes(mask, [&](int l) {
    uint64_t address = AddressOf(x, op, l);
    const Space space = Resolve(op.space, address);
    if (x.stop || !CheckAligned(x, op, l, address, sizeof(Wide))) return;
    std::byte* at = space == Space::kGlobal
                        ? GlobalPointer(x, op, l, address, sizeof(Wide), "atomic")
                        : WindowPointer(x, op, l, space, address, sizeof(Wide), "atomic");
    if (at == nullptr) return;
    if (space == Space::kShared && x.checks.any)
      ShadowWrite(x, op, l, address, sizeof(Wide), false, true);
    if (space == Space::kGlobal && NotesWrites(x))
      CheckGlobalAtomic(x, op, l, address, sizeof(Wide));
    const std::lock_guard lock(mutex);
    Wide old{};
    std::memcpy(&old, at, sizeof old);
    const bool swaps = static_cast<AtomicOp>(op.variant) == AtomicOp::kCas;
    const Wide next = !swaps                       ? value(op.src[1], l)
                      : old == value(op.src[1], l) ? value(op.src[2], l)
                                                   : old;
    std::memcpy(at, &next, sizeof next);
    if (space == Space::kGlobal && op.order.polls) ObserveFlag(x, address, sizeof(Wide));
    Lane<uint64_t>::Set(x.Slot(op.dst), l, old.low);
    Lane<uint64_t>::Set(x.Slot(op.dst + 2), l, old.high);
    if (space == Space::kGlobal) ++x.counting.total.global.atomics;
  });
}

Handler AtomicFor(Type type) {
  switch (type) {
    case Type::kB32:
    case Type::kU32:
      return Atomic<uint32_t>;
    case Type::kS32:
      return Atomic<int32_t>;
    case Type::kB64:
    case Type::kU64:
      return Atomic<uint64_t>;
    case Type::kS64:
      return Atomic<int64_t>;
    case Type::kF32:
      return Atomic<float>;
    case Type::kF64:
      return Atomic<double>;
    case Type::kB16:
      return Atomic<uint16_t>;
    default:
      return nullptr;
  }
}

constexpr std::pair<std::string_view, AtomicOp> kOps[] = {
    {"add", AtomicOp::kAdd},   {"min", AtomicOp::kMin}, {"max", AtomicOp::kMax},
    {"and", AtomicOp::kAnd},   {"or", AtomicOp::kOr},   {"xor", AtomicOp::kXor},
    {"exch", AtomicOp::kExch}, {"cas", AtomicOp::kCas}, {"inc", AtomicOp::kInc},
    {"dec", AtomicOp::kDec}};

/// One element of a bulk reduction.
template <class T, AtomicOp kOp>
void Reduce(std::byte* to, const std::byte* from, bool global) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  Bits with = 0;
  std::memcpy(&with, from, sizeof with);
  Exchange<Bits>(to, global, [&](Bits old) {
    return std::bit_cast<Bits>(Combine<T>(kOp, std::bit_cast<T>(old), std::bit_cast<T>(with), T{}));
  });
}
/// One or two 16-bit floats; of a NaN and a number the number.
template <bool kBrain, AtomicOp kOp>
uint32_t ApplyHalves(uint32_t old, uint32_t with) {
  if constexpr (kOp == AtomicOp::kAdd) return AddPair<kBrain>(old, with);
  uint32_t result = 0;
  for (int h = 0; h < 32; h += 16) {
    const auto a = static_cast<uint16_t>(old >> h);
    const auto b = static_cast<uint16_t>(with >> h);
    const float left = kBrain ? BFloat16ToFloat(a) : HalfToFloat(a);
    const float right = kBrain ? BFloat16ToFloat(b) : HalfToFloat(b);
    const bool second = std::isnan(left) || (kOp == AtomicOp::kMin ? right < left : right > left);
    result |= static_cast<uint32_t>(second ? b : a) << h;
  }
  return result;
}

template <bool kBrain, AtomicOp kOp>
void ReduceHalf(std::byte* to, const std::byte* from, bool global) {
  uint16_t with = 0;
  std::memcpy(&with, from, sizeof with);
  Exchange<uint16_t>(to, global, [&](uint16_t old) {
    return static_cast<uint16_t>(ApplyHalves<kBrain, kOp>(old, with));
  });
}

template <AtomicOp kOp>
Reduction ReductionFor(Type type) {
  constexpr bool kBits = kOp == AtomicOp::kAnd || kOp == AtomicOp::kOr || kOp == AtomicOp::kXor;
  constexpr bool kOrder = kOp == AtomicOp::kMin || kOp == AtomicOp::kMax;
  switch (type) {
    case Type::kB32:
    case Type::kU32:
      return Reduce<uint32_t, kOp>;
    case Type::kB64:
    case Type::kU64:
      return Reduce<uint64_t, kOp>;
    case Type::kS32:
      return kOrder || kOp == AtomicOp::kAdd || kBits ? Reduce<int32_t, kOp> : nullptr;
    case Type::kS64:
      return kOrder || kOp == AtomicOp::kAdd || kBits ? Reduce<int64_t, kOp> : nullptr;
    case Type::kF16:
      return kOrder || kOp == AtomicOp::kAdd ? ReduceHalf<false, kOp> : nullptr;
    case Type::kBF16:
      return kOrder || kOp == AtomicOp::kAdd ? ReduceHalf<true, kOp> : nullptr;
    default:
      break;
  }
  if constexpr (kOp == AtomicOp::kAdd) {
    if (type == Type::kF32) return Reduce<float, kOp>;
    if (type == Type::kF64) return Reduce<double, kOp>;
  }
  return nullptr;
}

// ---- several elements
/// A reduction of the bits of an element in memory and of the operand.
using Apply = uint32_t (*)(uint32_t old, uint32_t with);
uint32_t AddFloat(uint32_t old, uint32_t with) {
  return std::bit_cast<uint32_t>(std::bit_cast<float>(old) + std::bit_cast<float>(with));
}
/// Elements one by one, each atomically. `width` bytes each; operands are the last `variant`
/// entries of the list.
template <class Bits, Apply kApply>
void VectorAtomic(BlockState& x, const Op& op, uint32_t mask) {
  Synchronise(x, op, mask);
  const int elements = op.variant;
  const int results = op.list_size - elements;
  const auto bytes = static_cast<uint32_t>(sizeof(Bits)) * static_cast<uint32_t>(elements);
  ForLanes(mask, [&](int l) {
    uint64_t address = AddressOf(x, op, l);
    if (x.stop || !CheckAligned(x, op, l, address, bytes)) return;
    if (Resolve(op.space, address) != Space::kGlobal)
      return Report(x, op, Hazard::Kind::kOutOfBounds, l, "vector atomic outside of global memory");
    std::byte* at = GlobalPointer(x, op, l, address, bytes, "vector atomic");
    if (at == nullptr) return;
    NoteGlobalRead(x, op, l, address, bytes);
    NoteGlobalWrite(x, op, l, address, bytes, nullptr, true);
    for (int i = 0; i < elements; ++i) {
      const int32_t* list = x.kernel->lists.data() + op.list;
      const auto with = static_cast<Bits>(x.Source(list[results + i])[l]);
      const Bits old = Exchange<Bits>(at + static_cast<size_t>(i) * sizeof(Bits), true,
                                      [&](Bits v) { return static_cast<Bits>(kApply(v, with)); });
      if (results > 0 && list[i] != INT32_MIN) x.Slot(list[i])[l] = old;
    }
    if (op.order.polls) ObserveFlag(x, address, bytes);
    x.counting.total.global.atomics += static_cast<uint64_t>(elements);
  });
}

template <bool kBrain, AtomicOp kOp>
Handler HalvesHandler(bool pairs) {
  return pairs ? VectorAtomic<uint32_t, ApplyHalves<kBrain, kOp>>
               : VectorAtomic<uint16_t, ApplyHalves<kBrain, kOp>>;
}
template <bool kBrain>
Handler HalvesHandler(const Form& form, bool pairs) {
  if (form.Has("add")) return HalvesHandler<kBrain, AtomicOp::kAdd>(pairs);
  if (form.Has("min")) return HalvesHandler<kBrain, AtomicOp::kMin>(pairs);
  return form.Has("max") ? HalvesHandler<kBrain, AtomicOp::kMax>(pairs) : nullptr;
}

}  // namespace

Handler VectorAtomicHandler(const Form& form, Op& op) {
  op.variant = form.Has("v2") ? 2 : form.Has("v4") ? 4 : 8;
  const uint32_t bytes = op.variant * static_cast<uint32_t>(ptx::BitsOf(form.type)) / 8;
  if (bytes > 16) return nullptr;
  switch (form.type) {
    case Type::kF32:
      return form.Has("add") ? VectorAtomic<uint32_t, AddFloat> : nullptr;
    case Type::kF16:
    case Type::kF16x2:
      return HalvesHandler<false>(form, form.type == Type::kF16x2);
    case Type::kBF16:
    case Type::kBF16x2:
      return HalvesHandler<true>(form, form.type == Type::kBF16x2);
    default:
      return nullptr;
  }
}

Reduction FindReduction(std::string_view operation, Type type) {
  const auto at = std::ranges::find(kOps, operation, &std::pair<std::string_view, AtomicOp>::first);
  switch (at == std::end(kOps) ? AtomicOp::kCas : at->second) {
    case AtomicOp::kAdd:
      return ReductionFor<AtomicOp::kAdd>(type);
    case AtomicOp::kMin:
      return ReductionFor<AtomicOp::kMin>(type);
    case AtomicOp::kMax:
      return ReductionFor<AtomicOp::kMax>(type);
    case AtomicOp::kAnd:
      return ReductionFor<AtomicOp::kAnd>(type);
    case AtomicOp::kOr:
      return ReductionFor<AtomicOp::kOr>(type);
    case AtomicOp::kXor:
      return ReductionFor<AtomicOp::kXor>(type);
    case AtomicOp::kInc:
      return type == Type::kU32 ? ReductionFor<AtomicOp::kInc>(type) : nullptr;
    case AtomicOp::kDec:
      return type == Type::kU32 ? ReductionFor<AtomicOp::kDec>(type) : nullptr;
    default:
      return nullptr;
  }
}

Handler AtomicHandler(const Form& form, Op& op) {
  for (const auto& [name, what] : kOps) {
    if (!form.Has(name)) continue;
    op.variant = static_cast<uint8_t>(what);
    if (form.type == Type::kB128)
      return op.dst >= 0 && (what == AtomicOp::kExch || what == AtomicOp::kCas) ? AtomicWide
                                                                                : nullptr;
    const bool is_float = form.type == Type::kF32 || form.type == Type::kF64;
    if (is_float && what != AtomicOp::kAdd && what != AtomicOp::kExch) return nullptr;
    if (form.type == Type::kF16x2) return what == AtomicOp::kAdd ? AtomicPair<false> : nullptr;
    if (form.type == Type::kBF16x2) return what == AtomicOp::kAdd ? AtomicPair<true> : nullptr;
    if (form.type == Type::kF16) return what == AtomicOp::kAdd ? AtomicHalf<false> : nullptr;
    if (form.type == Type::kBF16) return what == AtomicOp::kAdd ? AtomicHalf<true> : nullptr;
    return AtomicFor(form.type);
  }
  return nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
