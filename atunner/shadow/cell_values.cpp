#include "atunner/shadow/cell_values.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

namespace atunner::shadow {
namespace {

uint32_t BitsOf(const std::byte* memory, size_t size) {
  uint32_t bits = 0;
  std::memcpy(&bits, memory, size);
  return bits;
}

bool IsAtomic(const Cell& cell) {
  return cell.rounded == kAtomicMark && cell.bits >= kAtomicFloat32 && cell.bits <= kAtomicFloat64;
}

/// True if `value` is what `rounded` was made of.
bool RoundsTo(DType type, double value, double rounded) {
  alignas(8) std::byte narrow[8];
  StoreElement(type, narrow, 0, value);
  const double again = LoadElement(type, narrow, 0);
  return again == rounded || (std::isnan(again) && std::isnan(rounded));
}

/// A float64 is the rounded halves of two cells.
std::optional<double> TwinOfDouble(const std::byte* memory, const Cell* cells) {
  if (IsAtomic(cells[0])) return cells[0].value;
  if (cells[0].bits != BitsOf(memory, 4) || cells[2].bits != BitsOf(memory + 4, 4)) return {};
  return std::bit_cast<double>(uint64_t{cells[2].rounded} << 32 | cells[0].rounded);
}

std::optional<double> TwinOfNarrow(DType type, const std::byte* memory, const Cell& cell) {
  if (IsAtomic(cell)) return cell.value;
  const size_t size = SizeOf(type);
  const uint32_t mask = size == 4 ? ~0u : 0xffff;
  if ((cell.bits & mask) != BitsOf(memory, size)) return {};
  const uint32_t bits = cell.rounded & mask;
  const double rounded = LoadElement(type, &bits, 0);
  return RoundsTo(type, cell.value, rounded) ? cell.value : rounded;
}

}  // namespace

double TwinOf(DType type, const std::byte* memory, const Cell* cells) {
  const auto twin = type == DType::kFloat64 ? TwinOfDouble(memory, cells)
                                            : TwinOfNarrow(type, memory, *cells);
  return twin ? *twin : LoadElement(type, memory, 0);
}

}  // namespace atunner::shadow
