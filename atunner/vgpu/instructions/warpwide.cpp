#include "atunner/vgpu/instructions/warpwide.h"

#include <algorithm>

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

// Spans are filled field by field, and read so: a copy as a whole would wait until the fields have
// left the store buffer.

/// The span of all lanes. In two passes, because the second one is for irregular accesses only.
template <class T>
void FindSpanOf(const void* offsets, uint32_t bytes, Span& span) {
  using Signed = std::conditional_t<sizeof(T) == 8, int64_t, uint32_t>;
  const auto offset = [offsets](uint32_t l) {
    T v;
    std::memcpy(&v, static_cast<const std::byte*>(offsets) + l * sizeof v, sizeof v);
    return v;
  };
  const T first = offset(0);
  T uneven = 0;
  T gaps = 0;
  T next = first;
  for (uint32_t l = 0; l < kLanes; ++l, next += bytes) {
    uneven |= offset(l) ^ first;
    gaps |= offset(l) ^ next;
  }
  span.low = static_cast<int64_t>(static_cast<Signed>(first));
  span.high = static_cast<int64_t>(static_cast<Signed>(offset(kLanes - 1)));
  span.bits = gaps == 0 && uneven != 0 ? first | static_cast<T>(bytes) : first;
  span.layout = uneven == 0 ? Layout::kSame : gaps == 0 ? Layout::kDense : Layout::kApart;
  if (span.layout != Layout::kApart) return;
  T bits = 0;
  auto least = static_cast<Signed>(first);
  Signed most = least;
  for (uint32_t l = 0; l < kLanes; ++l) {
    const T v = offset(l);
    bits |= v;
    least = std::min(least, static_cast<Signed>(v));
    most = std::max(most, static_cast<Signed>(v));
  }
  span.low = static_cast<int64_t>(least);
  span.high = static_cast<int64_t>(most);
  span.bits = bits;
}
void FindSpanOfAll(const Op& op, const uint32_t* offsets, uint32_t bytes, Span& span) {
  op.narrow_address ? FindSpanOf<uint32_t>(offsets, bytes, span)
                    : FindSpanOf<uint64_t>(offsets, bytes, span);
}
void FindSpanOfSome(const BlockState& x, const Op& op, uint32_t mask, uint64_t* own, Span& span) {
  const uint32_t* a = x.Source(op.src[0]);
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const int l = std::countr_zero(m);
    own[l] = op.narrow_address ? a[l] : Lane<uint64_t>::Get(a, l);
    span.low = std::min(span.low, static_cast<int64_t>(own[l]));
    span.high = std::max(span.high, static_cast<int64_t>(own[l]));
    span.bits |= own[l];
  }
}

/// True if lanes l and l + kStep are equal for all l that are less than kEnd and multiples of
/// kEvery.
template <class T, uint32_t kStep, uint32_t kEvery, uint32_t kEnd>
bool Alike(const std::array<T, kLanes>& v) {
  T differs = 0;
  for (uint32_t l = 0; l < kEnd; l += kEvery) differs |= v[l] ^ v[l + kStep];
  return differs == 0;
}

template <class T>
void FindRepeats(const void* offsets, KnownSpan& known) {
  std::array<T, kLanes> v;
  std::memcpy(v.data(), offsets, sizeof v);
  if (Alike<T, 16, 1, 16>(v)) known.period = Alike<T, 8, 1, 8>(v) ? 8 : 16;
  if (!Alike<T, 1, 2, kLanes>(v)) return;
  const bool four = Alike<T, 2, 4, kLanes>(v);
  const bool eight = four && Alike<T, 4, 8, kLanes>(v);
  known.run = !four ? 2 : !eight ? 4 : Alike<T, 8, 16, kLanes>(v) ? 16 : 8;
}

/// True if an operation's results overwrite the address register that its further elements need.
bool OverwritesAddress(const BlockState& x, const Op& op) {
  if (op.list_size < 2 || !op.list_written) return false;
  const int32_t* list = x.kernel->lists.data() + op.list;
  return std::find(list, list + op.list_size, op.src[0]) != list + op.list_size;
}

/// The span of the addresses: `own`, or the cached span of the register.
const Span& FindOffsets(BlockState& x, const Op& op, uint32_t mask, uint32_t bytes, Warpwide& w,
                        Span& own) {
  if (op.src[0] == INT32_MIN) {
    std::fill_n(w.own, kLanes, uint64_t{0});
    w.UseOwn();
    own.low = own.high = 0;
    if (mask == ~0u) own.layout = Layout::kSame;
    return own;
  }
  const uint32_t* a = x.Source(op.src[0]);
  if (mask != ~0u || OverwritesAddress(x, op)) {
    w.UseOwn();
    FindSpanOfSome(x, op, mask, w.own, own);
    return own;
  }
  if (op.narrow_address)
    w.narrow = a;
  else
    w.wide = reinterpret_cast<const std::byte*>(a);
  if (op.src[0] < 0) {
    FindSpanOfAll(op, a, bytes, own);
    return own;
  }
  KnownSpan& known = x.spans.of_slot[static_cast<size_t>(op.src[0])];
  w.known = &known;
  if (op.address_known && known.basic_block == x.spans.basic_block && known.bytes == bytes)
    return known.span;
  FindSpanOfAll(op, a, bytes, known.span);
  known.basic_block = x.spans.basic_block;
  known.bytes = bytes;
  known.wavefronts = 0;
  known.period = kLanes;
  known.run = 1;
  if (op.address_shared && known.span.layout == Layout::kApart)
    op.narrow_address ? FindRepeats<uint32_t>(a, known) : FindRepeats<uint64_t>(a, known);
  return known.span;
}

/// The allocation that holds all of it, which is remembered; nullptr = there is none.
const Range* OneAllocation(BlockState& x, uint64_t low, uint64_t end) {
  ForgetFreed(x);
  for (const Range& range : x.allocations.ranges) {
    if (range.Contains(low, end)) return &range;
  }
  const auto range = x.launch->memory->Find(low);
  if (!range || !range->Contains(low, end)) return nullptr;
  Range& remembered = x.allocations.ranges[x.allocations.oldest++ % x.allocations.ranges.size()];
  remembered = *range;
  return &remembered;
}

/// Local memory is stored thread by thread.
void PlaceLocal(const BlockState& x, uint32_t mask, Warpwide& w) {
  const uint64_t per_thread = x.kernel->local_bytes;
  ForLanes(mask, [&](int l) {
    w.own[l] = (w.narrow ? w.narrow[l] : w.Wide(l)) + w.bias + x.ThreadOf(l) * per_thread;
  });
  w.UseOwn();
  w.known = nullptr;
  w.bias = 0;
  w.layout = Layout::kApart;
}

}  // namespace

bool Locate(BlockState& x, const Op& op, uint32_t mask, uint32_t bytes, Warpwide& w) {
  Span own;
  const Span& span = FindOffsets(x, op, mask, bytes, w, own);
  w.bias = op.imm;
  const auto first = static_cast<int64_t>(static_cast<uint64_t>(span.low) + op.imm);
  const auto last = static_cast<int64_t>(static_cast<uint64_t>(span.high) + op.imm);
  if (span.low < 0 || first < 0 || last < first) return false;
  auto low = static_cast<uint64_t>(first);
  auto end = static_cast<uint64_t>(last) + bytes;
  w.low = static_cast<uint64_t>(span.low);
  w.layout = span.layout;
  w.space = op.space;
  if (op.space == Space::kGeneric) {
    const uint64_t window = low & kWindowMask;
    if ((end & kWindowMask) != window) return false;
    w.space = Resolve(Space::kGeneric, low);
    if (w.space != Space::kGlobal) {
      w.bias -= window;
      end -= window;
    }
  }
  if (((span.bits | op.imm) & (bytes - 1)) != 0 && w.space != Space::kParam) return false;
  std::byte* origin = nullptr;
  bool inside = false;
  switch (w.space) {
    case Space::kGlobal:
    case Space::kConst:
      w.range = OneAllocation(x, low, end);
      inside = w.range != nullptr;
      break;
    case Space::kShared:
      origin = x.shared.bytes.data();
      inside = end <= x.shared.bytes.size();
      break;
    case Space::kLocal:
      origin = x.local.bytes.data();
      inside = end <= x.kernel->local_bytes;
      if (inside) PlaceLocal(x, mask, w);
      break;
    default:
      origin = const_cast<std::byte*>(x.launch->params.data());
      inside = end <= x.launch->params.size();
  }
  w.base = reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(origin) + w.bias);
  return inside;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
