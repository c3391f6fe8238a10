// Surfaces: suld, sust, sured.
#include <algorithm>

#include "atunner/model/value/dtype.h"
#include "atunner/vgpu/instructions/texture.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

/// The bytes that a lane's surface access means; null after reporting, or where an access outside
/// has no effect.
std::byte* Bytes(BlockState& x, const Op& op, const TextureOptions& o, int lane,
                 const int32_t* coordinates, uint64_t bytes) {
  TextureData* texture = FindTexture(x, op, lane, true);
  if (texture == nullptr) return nullptr;
  const TextureSpec& spec = texture->spec;
  if (!Suits(o.geometry, spec.shape, false)) {
    Report(x, op, Hazard::Kind::kOutOfBounds, lane,
           "the surface has other dimensions than the instruction");
    return nullptr;
  }
  const auto row = static_cast<int64_t>(spec.width * spec.TexelBytes());
  int next = 0;
  int64_t layer = IsLayered(o.geometry) ? int64_t{x.Source(coordinates[next++])[lane]} : 0;
  std::array<int64_t, 3> at{};
  for (int d = 0; d < DimsOf(o.geometry); ++d)
    at[static_cast<size_t>(d)] = static_cast<int32_t>(x.Source(coordinates[next + d])[lane]);
  if (o.formatted) at[0] *= static_cast<int64_t>(spec.TexelBytes());
  if (DimsOf(o.geometry) == 3) layer = at[2];
  const std::array<int64_t, 3> most{row - static_cast<int64_t>(bytes), int64_t{spec.height} - 1,
                                    int64_t{spec.depth} - 1};
  at[2] = layer;
  for (size_t d = 0; d < 3; ++d) {
    if (at[d] >= 0 && at[d] <= most[d]) continue;
    if (o.outside == Outside::kZero) return nullptr;
    if (o.outside == Outside::kTrap || most[d] < 0) {
      Report(x, op, Hazard::Kind::kOutOfBounds, lane,
             "surface access at (" + std::to_string(at[0]) + ", " + std::to_string(at[1]) + ", " +
                 std::to_string(at[2]) + "), the surface has rows of " + std::to_string(row) +
                 " bytes, height " + std::to_string(spec.height) + " and depth " +
                 std::to_string(spec.depth));
      return nullptr;
    }
    at[d] = std::clamp<int64_t>(at[d], 0, most[d]);
  }
  if (at[0] % static_cast<int64_t>(bytes) != 0) {
    Report(x, op, Hazard::Kind::kMisaligned, lane,
           "surface coordinate " + std::to_string(at[0]) + " is not a multiple of the access's " +
               std::to_string(bytes) + " bytes");
    return nullptr;
  }
  return texture->texels.data() + (at[2] * spec.height + at[1]) * row + at[0];
}

void LoadSurface(BlockState& x, const Op& op, uint32_t mask) {
  const auto o = std::bit_cast<TextureOptions>(op.imm);
  const int32_t* to = x.kernel->lists.data() + op.list;
  const uint64_t bytes = uint64_t{op.width} * o.results;
  Addresses addresses(x, bytes, false);
  ForLanes(mask, [&](int l) {
    if (x.stop) return;
    const std::byte* from = Bytes(x, op, o, l, to + o.results, bytes);
    if (x.stop) return;
    addresses.Note(l, from);
    for (uint32_t i = 0; i < o.results; ++i) {
      uint64_t value = 0;
      if (from != nullptr) std::memcpy(&value, from + uint64_t{i} * op.width, op.width);
      if (to[i] < 0) continue;
      if (op.width == 8)
        Lane<uint64_t>::Set(x.Slot(to[i]), l, value);
      else
        x.Slot(to[i])[l] = static_cast<uint32_t>(value);
    }
  });
}

void StoreSurface(BlockState& x, const Op& op, uint32_t mask) {
  const auto o = std::bit_cast<TextureOptions>(op.imm);
  const int32_t* list = x.kernel->lists.data() + op.list;
  const int32_t* coordinates = list + o.results;
  const uint64_t bytes = uint64_t{op.width} * o.results;
  Addresses addresses(x, bytes, true);
  ForLanes(mask, [&](int l) {
    std::byte* to = x.stop ? nullptr : Bytes(x, op, o, l, coordinates, bytes);
    if (to == nullptr) return;
    addresses.Note(l, to);
    for (uint32_t i = 0; i < o.results; ++i) {
      const uint32_t* from = x.Source(list[i]);
      const uint64_t value = op.width == 8 ? Lane<uint64_t>::Get(from, l) : from[l];
      std::memcpy(to + uint64_t{i} * op.width, &value, op.width);
    }
  });
}

/// sust.p: values of 32 bits become the surface's own type, one texel at a time.
void StoreTexel(BlockState& x, const Op& op, uint32_t mask) {
  const auto o = std::bit_cast<TextureOptions>(op.imm);
  const int32_t* list = x.kernel->lists.data() + op.list;
  ForLanes(mask, [&](int l) {
    const TextureData* texture = x.stop ? nullptr : FindTexture(x, op, l, true);
    if (texture == nullptr) return;
    const TextureSpec& spec = texture->spec;
    std::byte* to = Bytes(x, op, o, l, list + o.results, spec.TexelBytes());
    for (uint32_t c = 0; to != nullptr && c < std::min<uint32_t>(o.results, spec.channels); ++c) {
      const uint32_t bits = x.Source(list[c])[l];
      if (IsFloat(spec.dtype))
        StoreElement(spec.dtype, to, c, std::bit_cast<float>(bits));
      else
        std::memcpy(to + c * SizeOf(spec.dtype), &bits, SizeOf(spec.dtype));
    }
  });
}

template <class T>
T Reduced(Reduction reduction, T old, T with) {
  switch (reduction) {
    case Reduction::kAdd:
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                            static_cast<std::make_unsigned_t<T>>(with));
    case Reduction::kMin:
      return std::min(old, with);
    case Reduction::kMax:
      return std::max(old, with);
    case Reduction::kAnd:
      return old & with;
    case Reduction::kOr:
      return old | with;
  }
  return old;
}

/// Atomic: blocks on other cores may add to the same place.
template <class T>
void ReduceAt(std::byte* place, Reduction reduction, T with) {
  // rows of a length that no real surface has
  if (reinterpret_cast<uintptr_t>(place) % sizeof(T) != 0) {
    T value;
    std::memcpy(&value, place, sizeof value);
    value = Reduced(reduction, value, with);
    std::memcpy(place, &value, sizeof value);
    return;
  }
  auto* const at = reinterpret_cast<T*>(place);
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  T fresh = Reduced(reduction, old, with);
  while (!__atomic_compare_exchange_n(at, &old, fresh, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    fresh = Reduced(reduction, old, with);
}

void ReduceSurface(BlockState& x, const Op& op, uint32_t mask) {
  const auto o = std::bit_cast<TextureOptions>(op.imm);
  const int32_t* list = x.kernel->lists.data() + op.list;
  Addresses addresses(x, op.width, true);
  ForLanes(mask, [&](int l) {
    std::byte* to = x.stop ? nullptr : Bytes(x, op, o, l, list + 1, op.width);
    if (to == nullptr) return;
    addresses.Note(l, to);
    const uint32_t* from = x.Source(list[0]);
    if (op.width == 8)
      o.is_signed ? ReduceAt(to, o.reduction, Lane<int64_t>::Get(from, l))
                  : ReduceAt(to, o.reduction, Lane<uint64_t>::Get(from, l));
    else
      o.is_signed ? ReduceAt(to, o.reduction, static_cast<int32_t>(from[l]))
                  : ReduceAt(to, o.reduction, from[l]);
  });
}

uint8_t VectorOf(const Form& form) { return form.Has("v4") ? 4 : form.Has("v2") ? 2 : 1; }

}  // namespace

Handler SurfaceHandler(const Form& form, TextureOptions& o, Op& op) {
  static constexpr std::array<std::string_view, 3> kOutside = {"trap", "clamp", "zero"};
  static constexpr std::array<std::string_view, 5> kReductions = {"add", "min", "max", "and", "or"};
  o.surface = true;
  o.results = VectorOf(form);
  o.formatted = form.Has("p");
  if (!ReadGeometry(form, o) || IsCube(o.geometry) || IsSampled(o.geometry) ||
      !ReadNamed(form, kOutside, o.outside))
    return nullptr;
  op.width = static_cast<uint8_t>(ptx::BitsOf(form.type) / 8);
  const std::string& opcode = form.instruction->opcode;
  if (opcode == "suld")
    return o.formatted || op.width * o.results > 16 || op.width == 0 ? nullptr : LoadSurface;
  if (opcode == "sust" && o.formatted) return op.width == 4 ? StoreTexel : nullptr;
  if (opcode == "sust") return op.width * o.results > 16 || op.width == 0 ? nullptr : StoreSurface;
  o.is_signed = form.type == ptx::Type::kS32 || form.type == ptx::Type::kS64;
  const bool fits = op.width == 4 || op.width == 8;
  return fits && o.results == 1 && ReadNamed(form, kReductions, o.reduction) ? ReduceSurface
                                                                             : nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
