// Atomics and reductions.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "atunner/model/dtype.h"
#include "atunner/vgpu/access.h"

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
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(b));
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

void CheckGlobalAtomic(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  const auto what = static_cast<AtomicOp>(op.variant);
  if (what != AtomicOp::kExch) NoteGlobalRead(x, op, lane, address, bytes);
  NoteGlobalWrite(x, op, lane, address, bytes, nullptr, true);
}

template <class Bits, class F>
void AtomicLanes(Exec& x, const Op& op, uint32_t mask, F&& combine) {
  x.polled = true;
  // A lock's compare-and-swap and exchange order its critical sections even where the program says so nowhere else.
  const auto what = static_cast<AtomicOp>(op.variant);
  if (op.fence)
    OrderAll(x);
  else if (what == AtomicOp::kCas || what == AtomicOp::kExch)
    ++x.epoch;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint64_t address = AddressOf(x, op, l);
    const Space space = Resolve(op.space, address);
    if (!CheckAligned(x, op, l, address, sizeof(Bits))) return;
    const bool global = space == Space::kGlobal;
    std::byte* at = global ? GlobalPointer(x, op, l, address, sizeof(Bits), "atomic")
                           : WindowPointer(x, op, l, space, address, sizeof(Bits), "atomic");
    if (at == nullptr) return;
    if (space == Space::kShared && x.check) {
      const bool wanted = (x.launch->groups & static_cast<uint8_t>(HazardGroup::kInit)) != 0;
      if (wanted && !Initialised(x, address)) {
        return Report(x, op, Hazard::Kind::kUninitialisedShared, l,
                      "atomic on shared address " + Hex(address) + " before anything was written there");
      }
      ShadowWrite(x, op, l, address, sizeof(Bits), false, true);
    }
    if (global && x.track) CheckGlobalAtomic(x, op, l, address, sizeof(Bits));
    const Bits b = Lane<Bits>::Get(x.Source(op.src[1]), l);
    const Bits c = Lane<Bits>::Get(x.Source(op.src[2]), l);
    const Bits old = Exchange<Bits>(at, global, [&](Bits v) { return combine(v, b, c); });
    if (op.dst != INT32_MIN) Lane<Bits>::Set(x.Slot(op.dst), l, old);
    if (global) ++x.counts.atomics;
  }
  Acquire(x);
  x.loads_pending = x.loads_pending || op.dst != INT32_MIN;
}

template <class T>
void Atomic(Exec& x, const Op& op, uint32_t mask) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  const auto what = static_cast<AtomicOp>(op.variant);
  AtomicLanes<Bits>(x, op, mask, [what](Bits old, Bits b, Bits c) {
    return std::bit_cast<Bits>(Combine<T>(what, std::bit_cast<T>(old), std::bit_cast<T>(b), std::bit_cast<T>(c)));
  });
}
template <bool kBrain>
void AtomicPair(Exec& x, const Op& op, uint32_t mask) {
  AtomicLanes<uint32_t>(x, op, mask, [](uint32_t old, uint32_t b, uint32_t) { return AddPair<kBrain>(old, b); });
}

/// One 16-bit float.
template <bool kBrain>
void AtomicHalf(Exec& x, const Op& op, uint32_t mask) {
  AtomicLanes<uint16_t>(
      x, op, mask, [](uint16_t old, uint16_t b, uint16_t) { return static_cast<uint16_t>(AddPair<kBrain>(old, b)); });
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

}  // namespace

Handler AtomicHandler(const Form& form, Op& op) {
  static constexpr std::pair<std::string_view, AtomicOp> kOps[] = {
      {"add", AtomicOp::kAdd}, {"min", AtomicOp::kMin}, {"max", AtomicOp::kMax},   {"and", AtomicOp::kAnd},
      {"or", AtomicOp::kOr},   {"xor", AtomicOp::kXor}, {"exch", AtomicOp::kExch}, {"cas", AtomicOp::kCas},
      {"inc", AtomicOp::kInc}, {"dec", AtomicOp::kDec}};
  for (const auto& [name, what] : kOps) {
    if (!form.Has(name)) continue;
    op.variant = static_cast<uint8_t>(what);
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
