#include "atunner/shadow/shadow_space.h"

#include <array>
#include <cstring>
#include <span>

#include "atunner/shadow/cell_values.h"

namespace atunner::shadow {
namespace {

/// Shared addresses of a kernel begin behind what the driver reserves.
constexpr uint64_t kReservedSharedBytes = 1024;
constexpr uint64_t kCellBytesPerByte = 8;
constexpr uint8_t kNoTwin = 0xff;

/// Bytes of shared cells of a block.
uint64_t SharedStride(const ShadowSpace::Extent& extent) {
  return extent.shared_bytes == 0
             ? 0
             : kCellBytesPerByte * (extent.shared_bytes + kReservedSharedBytes);
}

}  // namespace

uint64_t ShadowSpace::BytesFor(const Extent& extent) {
  return kCellBytesPerByte * extent.arena_bytes + extent.blocks * SharedStride(extent);
}

Result<ShadowSpace> ShadowSpace::Make(Device& device, const Extent& extent) {
  ShadowSpace space(device, extent);
  ATUNNER_TRY(space.cells_, device.Allocate(kCellBytesPerByte * extent.arena_bytes));
  if (const uint64_t shared = extent.blocks * SharedStride(extent); shared > 0) {
    ATUNNER_TRY(space.shared_, device.Allocate(shared));
  }
  ATUNNER_RETURN_IF_ERROR(space.Clear());
  return space;
}

Status ShadowSpace::Clear() {
  ATUNNER_RETURN_IF_ERROR(device_->Fill(cells_->address(), kNoTwin, cells_->bytes()));
  return shared_ ? device_->Fill(shared_->address(), kNoTwin, shared_->bytes()) : Status{};
}

Status ShadowSpace::Attach(LoadedModule& module) const {
  const auto symbol = device_->FindSymbol(module, std::string(kSymbol));
  if (!symbol && symbol.error().code == ErrorCode::kNotFound) return {};  // it carries no floats
  if (!symbol) return std::unexpected(symbol.error());
  const std::array<uint64_t, kSymbolWords> words = {
      extent_.arena, extent_.arena_bytes, cells_->address(), shared_ ? shared_->address() : 0,
      shared_ ? SharedStride(extent_) : 0};
  return device_->CopyIn(symbol->first, std::as_bytes(std::span(words)));
}

Result<std::vector<double>> ShadowSpace::Read(DeviceAddress from, DType type,
                                              uint64_t count) const {
  const size_t size = SizeOf(type);
  const uint64_t offset = from - extent_.arena;
  if (from < extent_.arena || offset + count * size > extent_.arena_bytes)
    return Invalid("these elements are not in the arena", "shadow");
  std::vector<std::byte> memory(count * size);
  ATUNNER_RETURN_IF_ERROR(device_->CopyOut(memory, from));
  std::vector<Cell> cells(count * size / 2 + 1);
  const bool has_cells = IsFloat(type) && size >= 2;
  if (has_cells) {
    cells.resize(count * size / 2);
    ATUNNER_RETURN_IF_ERROR(device_->CopyOut(std::as_writable_bytes(std::span(cells)),
                                             cells_->address() + kCellBytesPerByte * offset));
  }
  std::vector<double> values(count);
  for (uint64_t i = 0; i < count; ++i)
    values[i] = has_cells ? TwinOf(type, memory.data() + i * size, &cells[i * size / 2])
                          : LoadElement(type, memory.data(), i);
  return values;
}

}  // namespace atunner::shadow
