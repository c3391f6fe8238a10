// Loads, stores, atomics and asynchronous copies, with their checks and counts.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "atunner/model/dtype.h"
#include "atunner/vgpu/internal.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

using ptx::Type;

std::string Hex(uint64_t v) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

uint64_t AddressOf(const Exec& x, const Op& op, int lane) {
  if (op.src[0] == INT32_MIN) return op.imm;
  const uint32_t* a = x.Source(op.src[0]);
  return (op.narrow_address ? a[lane] : Lane<uint64_t>::Get(a, lane)) + op.imm;
}

Space Resolve(Space space, uint64_t& address) {
  if (space != Space::kGeneric) return space;
  switch (address & kWindowMask) {
    case kSharedWindow:
      address &= ~kWindowMask;
      return Space::kShared;
    case kLocalWindow:
      address &= ~kWindowMask;
      return Space::kLocal;
    case kParamWindow:
      address &= ~kWindowMask;
      return Space::kParam;
    default:
      return Space::kGlobal;
  }
}

bool CheckAligned(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  if ((address & (bytes - 1)) == 0) return true;
  Report(x, op, Hazard::Kind::kMisaligned, lane,
         "address " + Hex(address) + " is not a multiple of " + std::to_string(bytes));
  return false;
}

/// Host pointer of a global access, or nullptr after reporting.
std::byte* GlobalPointer(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes, const char* verb) {
  if (!x.last_range.Contains(address, address + bytes)) {
    const auto range = x.launch->memory->Find(address);
    if (!range || !range->Contains(address, address + bytes)) {
      Report(x, op, Hazard::Kind::kOutOfBounds, lane,
             std::string(verb) + " of " + std::to_string(bytes) + " bytes at " + Hex(address) + ", " +
                 x.launch->memory->Describe(address));
      return nullptr;
    }
    x.last_range = *range;
  }
  return reinterpret_cast<std::byte*>(address);
}

std::byte* WindowPointer(Exec& x, const Op& op, int lane, Space space, uint64_t address, uint32_t bytes,
                         const char* verb) {
  const auto inside = [&](uint64_t size) { return address + bytes <= size && address + bytes >= address; };
  switch (space) {
    case Space::kShared:
      if (inside(x.shared.size())) return x.shared.data() + address;
      Report(x, op, Hazard::Kind::kOutOfBounds, lane,
             std::string(verb) + " of " + std::to_string(bytes) + " bytes at shared address " + Hex(address) +
                 ", the block has " + std::to_string(x.shared.size()));
      return nullptr;
    case Space::kLocal: {
      const uint64_t per_thread = x.kernel->function->local_bytes;
      if (inside(per_thread)) return x.local.data() + x.ThreadOf(lane) * per_thread + address;
      Report(x, op, Hazard::Kind::kOutOfBounds, lane,
             std::string(verb) + " at local address " + Hex(address) + ", the thread has " +
                 std::to_string(per_thread) + " bytes");
      return nullptr;
    }
    default:
      if (inside(x.launch->params.size())) return const_cast<std::byte*>(x.launch->params.data()) + address;
      Report(x, op, Hazard::Kind::kOutOfBounds, lane, std::string(verb) + " outside the parameters");
      return nullptr;
  }
}

// ---- shared-memory shadow ------------------------------------------------------------------------------------------
std::string Other(const SharedShadow& word, bool writer) {
  const uint16_t thread = writer ? word.writer : word.reader;
  return (writer ? "written by thread " : "read by ") +
         (thread >= 0xfffe ? std::string("several threads") : (writer ? "" : "thread ") + std::to_string(thread)) +
         " at line " + std::to_string(writer ? word.write_line : word.read_line) + " with no barrier between";
}

bool SameWarpOrdered(const Exec& x, uint16_t other, uint32_t other_sync) {
  return other < 0xfffe && other / kLanes == x.warp->index && other_sync != x.warp->sync_epoch;
}

void ShadowRead(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes) {
  const auto thread = static_cast<uint16_t>(x.ThreadOf(lane));
  for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    SharedShadow& s = x.shadow[word];
    const uint64_t low = std::max(address, word * 4) - word * 4;
    const uint64_t high = std::min(address + bytes, word * 4 + 4) - word * 4;
    const auto need = static_cast<uint8_t>(((1u << (high - low)) - 1u) << low);
    if ((s.initialised & need) != need) {
      return Report(x, op, Hazard::Kind::kUninitialisedShared, lane,
                    "reads shared address " + Hex(address) + " before anything was written there");
    }
    if (s.in_flight) {
      return Report(x, op, Hazard::Kind::kAsyncCopyInFlight, lane,
                    "reads shared address " + Hex(address) + " while an asynchronous copy to it is in flight");
    }
    if (op.relaxed) continue;
    if (s.write_epoch == x.epoch && s.writer != thread && !SameWarpOrdered(x, s.writer, s.write_sync)) {
      return Report(x, op, Hazard::Kind::kRace, lane, "reads shared address " + Hex(address) + ", " + Other(s, true));
    }
    // Of several readers in one warp the latest stands for all; of several warps nobody can.
    const bool other_warp = s.read_epoch == x.epoch && (s.reader >= 0xfffe || s.reader / kLanes != x.warp->index);
    s.reader = other_warp ? uint16_t{0xfffe} : thread;
    s.read_epoch = x.epoch;
    s.read_sync = x.warp->sync_epoch;
    s.read_line = op.source_line ? op.source_line : op.line;
  }
}

void ShadowWrite(Exec& x, const Op& op, int lane, uint64_t address, uint32_t bytes, bool same_value, bool atomic) {
  const auto thread = static_cast<uint16_t>(x.ThreadOf(lane));
  for (uint64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) {
    SharedShadow& s = x.shadow[word];
    const uint64_t low = std::max(address, word * 4) - word * 4;
    const uint64_t high = std::min(address + bytes, word * 4 + 4) - word * 4;
    const bool whole = high - low == 4;  // bytes of one word may belong to different threads: only whole words can race
    if (!atomic && !op.relaxed && whole && !same_value) {
      if (s.write_epoch == x.epoch && s.writer != thread && !SameWarpOrdered(x, s.writer, s.write_sync)) {
        return Report(x, op, Hazard::Kind::kRace, lane,
                      "writes shared address " + Hex(address) + ", " + Other(s, true));
      }
      if (s.read_epoch == x.epoch && s.reader != thread && !SameWarpOrdered(x, s.reader, s.read_sync)) {
        return Report(x, op, Hazard::Kind::kRace, lane,
                      "writes shared address " + Hex(address) + ", " + Other(s, false));
      }
    }
    s.initialised |= static_cast<uint8_t>(((1u << (high - low)) - 1u) << low);
    if (atomic || op.relaxed || !whole) continue;
    s.write_epoch = x.epoch;
    s.writer = thread;
    s.write_sync = x.warp->sync_epoch;
    s.write_line = op.source_line ? op.source_line : op.line;
  }
}

// ---- counting ------------------------------------------------------------------------------------------------------
void CountGlobal(Exec& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes, bool store) {
  uint64_t sectors[kLanes * 2];
  int n = 0;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const uint64_t a = addresses[std::countr_zero(m)];
    for (uint64_t s = a / 32; s <= (a + bytes - 1) / 32; ++s) {
      if (n == 0 || sectors[n - 1] != s) sectors[n++] = s;
    }
  }
  if (!std::is_sorted(sectors, sectors + n)) std::sort(sectors, sectors + n);
  n = static_cast<int>(std::unique(sectors, sectors + n) - sectors);
  auto& unique = store ? x.store_sectors : x.load_sectors;
  for (int i = 0; i < n; ++i) unique.insert(sectors[i]);
  const auto lanes = static_cast<uint64_t>(std::popcount(mask));
  (store ? x.counts.global_stores : x.counts.global_loads) += 1;
  (store ? x.counts.global_store_sectors : x.counts.global_load_sectors) += static_cast<uint64_t>(n);
  (store ? x.counts.global_store_bytes : x.counts.global_load_bytes) += lanes * bytes;
}

/// Wavefronts of a shared access: the most distinct words that fall into one bank, per part of the warp served at once.
void CountShared(Exec& x, const uint64_t* addresses, uint32_t mask, uint32_t bytes) {
  ++x.counts.shared_requests;
  const int parts = bytes <= 4 ? 1 : bytes == 8 ? 2 : 4;
  const int lanes_per_part = kLanes / parts;
  for (int part = 0; part < parts; ++part) {
    uint64_t words[kLanes * 4];
    int n = 0;
    for (int l = part * lanes_per_part; l < (part + 1) * lanes_per_part; ++l) {
      if (!((mask >> l) & 1u)) continue;
      for (uint64_t w = addresses[l] / 4; w <= (addresses[l] + bytes - 1) / 4; ++w) words[n++] = w;
    }
    if (n == 0) continue;
    std::sort(words, words + n);
    n = static_cast<int>(std::unique(words, words + n) - words);
    int banks[32] = {};
    int worst = 1;
    for (int i = 0; i < n; ++i) worst = std::max(worst, ++banks[words[i] % 32]);
    x.counts.shared_wavefronts += static_cast<uint64_t>(worst);
  }
}

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
        ShadowWrite(x, op, l, address, bytes, std::memcmp(to, value, bytes) == 0 && x.shadow[address / 4].initialised,
                    false);
    }
    if (space == Space::kGlobal) global_mask |= 1u << l;
    std::memcpy(to, value, bytes);
  }
  if (!x.count) return;
  if (global_mask) CountGlobal(x, addresses, global_mask, bytes, true);
  if (shared_mask) CountShared(x, addresses, shared_mask, bytes);
  if (!global_mask && !shared_mask) ++x.counts.local_requests;
}

// ---- atomics -------------------------------------------------------------------------------------------------------
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

template <class Bits, class F>
void AtomicLanes(Exec& x, const Op& op, uint32_t mask, F&& combine) {
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
      if (!(x.shadow[address / 4].initialised)) {
        return Report(x, op, Hazard::Kind::kUninitialisedShared, l,
                      "atomic on shared address " + Hex(address) + " before anything was written there");
      }
      ShadowWrite(x, op, l, address, sizeof(Bits), false, true);
    }
    const Bits b = Lane<Bits>::Get(x.Source(op.src[1]), l);
    const Bits c = Lane<Bits>::Get(x.Source(op.src[2]), l);
    const Bits old = Exchange<Bits>(at, global, [&](Bits v) { return combine(v, b, c); });
    if (op.dst != INT32_MIN) Lane<Bits>::Set(x.Slot(op.dst), l, old);
    if (global) ++x.counts.atomics;
  }
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

// ---- asynchronous copies -------------------------------------------------------------------------------------------
/// cp.async: the bytes arrive at once, and count as in flight until the thread has waited for their group.
void AsyncCopy(Exec& x, const Op& op, uint32_t mask) {
  const uint32_t bytes = op.width;
  uint64_t sources[kLanes] = {};
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    uint64_t to_address = AddressOf(x, op, l);
    if (Resolve(Space::kGeneric, to_address) == Space::kShared) to_address &= ~kWindowMask;
    const uint64_t from_address =
        Lane<uint64_t>::Get(x.Source(op.src[1]), l) + static_cast<uint64_t>(static_cast<int64_t>(op.dst2));
    const uint32_t take = op.src[2] == INT32_MIN ? bytes : std::min(bytes, x.Source(op.src[2])[l]);
    sources[l] = from_address;
    if (!CheckAligned(x, op, l, to_address, bytes) || !CheckAligned(x, op, l, from_address, bytes)) return;
    std::byte* to = WindowPointer(x, op, l, Space::kShared, to_address, bytes, "asynchronous copy");
    if (to == nullptr) return;
    const std::byte* from = take ? GlobalPointer(x, op, l, from_address, take, "asynchronous copy") : nullptr;
    if (take && from == nullptr) return;
    if (x.check) {
      ShadowWrite(x, op, l, to_address, bytes, false, false);
      const uint32_t thread = x.ThreadOf(l);
      for (uint64_t w = to_address / 4; w < (to_address + bytes) / 4; ++w) x.shadow[w].in_flight = 1;
      x.pending[thread].push_back({static_cast<uint32_t>(to_address / 4), bytes / 4, x.copy_group[thread]});
    }
    std::memset(to, 0, bytes);
    if (take) std::memcpy(to, from, take);
  }
  x.counts.async_copy_bytes += static_cast<uint64_t>(std::popcount(mask)) * bytes;
  if (x.count) CountGlobal(x, sources, mask, bytes, false);
}

void AsyncCommit(Exec& x, const Op&, uint32_t mask) {
  if (!x.check) return;
  for (uint32_t m = mask; m != 0; m &= m - 1) ++x.copy_group[x.ThreadOf(std::countr_zero(m))];
}

/// wait_group N: all but the newest N groups have landed. `imm` = N, or ~0 for wait_all.
void AsyncWait(Exec& x, const Op& op, uint32_t mask) {
  x.loads_pending = true;
  if (!x.check) return;
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    const uint32_t thread = x.ThreadOf(l);
    std::vector<PendingCopy>& pending = x.pending[thread];
    std::erase_if(pending, [&](const PendingCopy& copy) {
      const bool landed = op.imm == ~uint64_t{0} || copy.group + op.imm < x.copy_group[thread];
      if (!landed) return false;
      for (uint32_t w = copy.word; w < copy.word + copy.words; ++w) {
        x.shadow[w].in_flight = 0;
        x.shadow[w].write_epoch = x.epoch;  // visible to others only after a barrier
        x.shadow[w].writer = static_cast<uint16_t>(thread);
        x.shadow[w].write_sync = x.warp->sync_epoch;
      }
      return true;
    });
  }
}

void NoEffect(Exec&, const Op&, uint32_t) {}

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

Handler MemoryHandler(const Form& form, Op& op) {
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "ld" || opcode == "ldu") {
    if (op.space == Space::kGlobal && op.width == 4 && !(op.variant & 1)) return LoadGlobalFast<4>;
    if (op.space == Space::kGlobal && op.width == 8) return LoadGlobalFast<8>;
    return Load;
  }
  if (opcode == "st") return Store;
  if (opcode == "prefetch" || opcode == "prefetchu" || opcode == "discard" || opcode == "applypriority")
    return NoEffect;
  if (opcode != "cp" || !form.Has("async") || form.Has("bulk") || form.Has("mbarrier")) return nullptr;
  if (form.Has("commit_group")) return AsyncCommit;
  if (form.Has("wait_group") || form.Has("wait_all")) return AsyncWait;
  return AsyncCopy;
}

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
    return AtomicFor(form.type);
  }
  return nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
