// Bulk copies by tensor maps: boxes of tensors between global and shared memory,
// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor. They land at once; mbarriers and bulk
// groups say when that may be relied on.
#include <algorithm>

#include "atunner/vgpu/instructions/bulk.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/tensor_map.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint64_t kMapAlignment = 64;
constexpr uint64_t kBoxAlignment = 128;
constexpr uint32_t kChunk = 16;
constexpr uint16_t kOutside = 0x7ff7;  // for 16-bit floats the NaN that fma.oob detects

/// The form of a copy, packed into Op::dst2 as a negative number, which is not a slot. The list
/// holds the coordinates, the offsets of im2col loads and the multicast mask.
struct CopyForm {
  uint32_t reduction = std::size(kReductions);  ///< index; their number = none
  bool im2col = false;
  uint32_t offsets = 0;

  int32_t Pack() const { return ~static_cast<int32_t>(reduction | im2col << 8 | offsets << 9); }
  static CopyForm Unpack(const Op& op) {
    const auto code = static_cast<uint32_t>(~op.dst2);
    return {code & 255, (code >> 8 & 1) != 0, code >> 9};
  }
};

int64_t Coordinate(const BlockState& x, const Op& op, int lane, size_t i) {
  return static_cast<int32_t>(x.Source(x.kernel->lists[op.list + i])[lane]);
}

/// Hardware addresses tensors in chunks of 16 bytes: a box that begins within one is an illegal
/// instruction. So is a store (or reduction) that begins before the tensor.
bool CheckCorner(BlockState& x, const Op& op, int lane, const VirtualTensorMap& map, bool store) {
  for (size_t i = 0; store && i < map.rank; ++i) {
    if (Coordinate(x, op, lane, i) >= 0) continue;
    Report(x, op, Hazard::Kind::kOutOfBounds, lane,
           "tensor copy: the box to store begins before the tensor, at " +
               std::to_string(Coordinate(x, op, lane, i)) + " of dimension " + std::to_string(i));
    return false;
  }
  const int64_t byte = Coordinate(x, op, lane, 0) * static_cast<int64_t>(map.strides[0]);
  if (byte % kChunk == 0) return true;
  Report(x, op, Hazard::Kind::kMisaligned, lane,
         "tensor copy: the innermost coordinate lies " + std::to_string(byte) +
             " bytes into the tensor's lines, no multiple of " + std::to_string(kChunk));
  return false;
}

std::optional<VirtualTensorMap> ReadMap(BlockState& x, const Op& op, int lane, bool store) {
  uint64_t address = BulkAddress(x, op, 1, lane);
  const Space space = Resolve(Space::kGeneric, address);
  if (!CheckAligned(x, op, lane, address, kMapAlignment)) return std::nullopt;
  const std::byte* at = space == Space::kGlobal
                            ? GlobalPointer(x, op, lane, address, sizeof(TensorMap::bytes),
                                            "tensor map")
                            : WindowPointer(x, op, lane, space, address, sizeof(TensorMap::bytes),
                                            "tensor map");
  if (at == nullptr) return std::nullopt;
  const auto map = DecodeTensorMap(at);
  if (!map) {
    Report(x, op, Hazard::Kind::kTrap, lane,
           "copies by 128 bytes that are no tensor map of this device");
  } else if ((map->im2col != 0) != CopyForm::Unpack(op).im2col) {
    Report(x, op, Hazard::Kind::kTrap, lane,
           map->im2col ? "copies a box by a tensor map of im2col mode"
                       : "copies pixels by a tensor map of tile mode");
  } else if (map->fill_nan && !IsFloat(map->dtype)) {
    Report(x, op, Hazard::Kind::kTrap, lane, "copies integers by a tensor map that fills with NaN");
  } else if (map->rank != op.width) {
    Report(x, op, Hazard::Kind::kTrap, lane,
           "names " + std::to_string(op.width) + " coordinates of a tensor of " +
               std::to_string(map->rank) + " dimensions");
  } else if (map->Rows() * map->RowBytes() >
             x.shared.bytes.size()) {  // before anybody makes room for it
    Report(x, op, Hazard::Kind::kOutOfBounds, lane,
           "copies a box of " + std::to_string(map->Rows() * map->RowBytes()) +
               " bytes, the block has " + std::to_string(x.shared.bytes.size()) +
               " of shared memory");
  } else if (CheckCorner(x, op, lane, *map, store)) {
    return map;
  }
  return std::nullopt;
}

/// One line of a box along the innermost dimension.
struct Row {
  uint64_t address = 0;  ///< address of the first element inside the tensor
  uint32_t first = 0;    ///< offset of that element in the line, in bytes
  uint32_t bytes = 0;    ///< bytes inside the tensor; 0 = none
};

/// Iterates over the begins of a box's lines: along the second dimension, then the third, and so
/// on.
struct Walk {
  Walk(const BlockState& x, const Op& op, int lane, const VirtualTensorMap& map) {
    const bool offsets = CopyForm::Unpack(op).offsets > 0;
    for (size_t i = 0; i < map.rank; ++i) {
      const bool pixels = map.im2col && i > 0 && i + 1u < map.rank;
      corner[i] = at[i] = Coordinate(x, op, lane, i);
      if (pixels && offsets)
        offset[i] = static_cast<uint16_t>(Coordinate(x, op, lane, map.rank + i - 1));
      first[i] = pixels ? map.lower[i - 1] : corner[i];
      end[i] = pixels       ? static_cast<int64_t>(map.dims[i]) + map.upper[i - 1]
               : map.im2col ? INT64_MAX
                            : corner[i] + map.box[i];
    }
  }
  void Next(const VirtualTensorMap& map) {
    for (size_t i = 1; i < map.rank; ++i) {
      at[i] += map.steps[i];
      if (at[i] < end[i]) return;
      at[i] = first[i];
    }
  }

  int64_t corner[5] = {};
  int64_t at[5] = {};
  int64_t offset[5] = {};  ///< of a filter's tap, im2col
  int64_t first[5] = {};   ///< where a dimension begins again
  int64_t end[5] = {};     ///< before which it does
};

/// Calls f(index of the line, line) for all lines of the box at the lane's coordinates. Lines end
/// with the tensor, or with the chunk in which it ends.
template <class F>
void ForRows(const BlockState& x, const Op& op, int lane, const VirtualTensorMap& map,
             bool whole_chunks, F&& f) {
  Walk walk(x, op, lane, map);
  const int64_t corner = walk.corner[0];
  const auto chunk = whole_chunks ? static_cast<int64_t>(kChunk / map.strides[0]) : 1;
  const auto length = (static_cast<int64_t>(map.dims[0]) + chunk - 1) / chunk * chunk;
  const int64_t begin = std::clamp<int64_t>(corner, 0, length);
  const int64_t end = std::clamp<int64_t>(corner + map.box[0], begin, length);
  const auto rows = static_cast<uint32_t>(map.Rows());
  for (uint32_t row = 0; row < rows; ++row, walk.Next(map)) {
    uint64_t address = map.address + static_cast<uint64_t>(begin) * map.strides[0];
    bool inside = begin < end;
    for (size_t i = 1; i < map.rank; ++i) {
      const int64_t at = walk.at[i] + walk.offset[i];
      inside = inside && at >= 0 && at < static_cast<int64_t>(map.dims[i]);
      address += static_cast<uint64_t>(at) * map.strides[i];
    }
    const auto bytes = [&](int64_t elements) {
      return static_cast<uint32_t>(elements) * static_cast<uint32_t>(map.strides[0]);
    };
    f(row, inside ? Row{address, bytes(begin - corner), bytes(end - begin)} : Row{});
  }
}

/// Swizzling exchanges chunks by address bits 7 and up.
uint64_t Swizzled(const VirtualTensorMap& map, uint64_t address) {
  return address ^ (address >> 7 & (map.swizzle_chunks - 1u)) << 4;
}

bool CheckBox(BlockState& x, const Op& op, int lane, uint64_t address) {
  if (address % kBoxAlignment == 0) return true;
  Report(x, op, Hazard::Kind::kMisaligned, lane,
         "tensor copy: shared address " + Hex(address) + " is no multiple of " +
             std::to_string(kBoxAlignment));
  return false;
}

/// Fills the elements of a box that are outside the tensor.
void FillOutside(const VirtualTensorMap& map, std::vector<std::byte>& box) {
  std::ranges::fill(box, std::byte{0});
  if (!map.fill_nan) return;
  const auto width = static_cast<size_t>(map.strides[0]);
  if (width == sizeof kOutside) {
    for (size_t i = 0; i + 1 < box.size(); i += width) std::memcpy(&box[i], &kOutside, width);
    return;
  }
  for (size_t i = 0; i < box.size(); ++i)
    box[i] = i % width == width - 1 ? std::byte{0x7f} : std::byte{0xff};
}

/// The box as dense lines; false after reporting.
bool ReadTensor(BlockState& x, const Op& op, int lane, const VirtualTensorMap& map,
                std::vector<std::byte>& box) {
  box.resize(size_t{map.Rows()} * map.RowBytes());
  FillOutside(map, box);
  x.timing.read_before = true;
  ForRows(x, op, lane, map, false, [&](uint32_t index, const Row& row) {
    if (row.bytes == 0 || x.stop) return;
    const std::byte* from = GlobalPointer(x, op, lane, row.address, row.bytes, "tensor copy");
    if (from == nullptr) return;
    NoteGlobalCopy(x, op, lane, row.address, row.bytes);
    std::memcpy(box.data() + size_t{index} * map.RowBytes() + row.first, from, row.bytes);
    if (x.counting.enabled) CountBulk(x, row.address, row.bytes, false);
  });
  return !x.stop;
}

void LoadTensor(BlockState& x, const Op& op, uint32_t mask) {
  static thread_local std::vector<std::byte> box;
  const uint32_t mask_at = op.width + CopyForm::Unpack(op).offsets;
  const uint32_t* multicast = op.list_size > mask_at ? x.Source(x.kernel->lists[op.list + mask_at])
                                                     : nullptr;
  ForLanes(mask, [&](int l) {
    const auto map = x.stop ? std::nullopt : ReadMap(x, op, l, false);
    if (!map || !ReadTensor(x, op, l, *map, box)) return;
    ForDestinations(x, op, l, multicast, [&](uint64_t address, uint64_t barrier) {
      if (!CheckBox(x, op, l, address)) return;
      std::byte* to = WindowPointer(x, op, l, Space::kShared, address, box.size(), "tensor copy");
      if (to == nullptr || !NoteBulkWrite(x, op, l, address, box.size(), barrier)) return;
      for (size_t i = 0; i < box.size(); i += kChunk)
        std::memcpy(to + (Swizzled(*map, address + i) - address), box.data() + i, kChunk);
      CompleteTransaction(x, op, l, barrier, static_cast<int32_t>(box.size()));
    });
    x.counting.total.async_copy_bytes += box.size();
  });
}

std::optional<ptx::Type> TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return ptx::Type::kF16;
    case DType::kBFloat16:
      return ptx::Type::kBF16;
    case DType::kFloat32:
      return ptx::Type::kF32;
    case DType::kFloat64:
      return ptx::Type::kF64;
    case DType::kInt32:
      return ptx::Type::kS32;
    case DType::kUInt32:
      return ptx::Type::kU32;
    case DType::kInt64:
      return ptx::Type::kS64;
    case DType::kUInt64:
      return ptx::Type::kU64;
    default:
      return std::nullopt;
  }
}

/// Writes a line of the box, or combines it with the values in memory.
void WriteRow(const Row& row, const std::byte* from, uint32_t element_bytes, Reduction reduce) {
  auto* to = reinterpret_cast<std::byte*>(row.address);
  if (reduce == nullptr) {
    std::memcpy(to, from, row.bytes);
    return;
  }
  for (uint32_t i = 0; i < row.bytes; i += element_bytes) reduce(to + i, from + i, true);
}

void StoreTensor(BlockState& x, const Op& op, uint32_t mask) {
  static thread_local std::vector<std::byte> box;
  const uint32_t operation = CopyForm::Unpack(op).reduction;
  ForLanes(mask, [&](int l) {
    const auto map = x.stop ? std::nullopt : ReadMap(x, op, l, true);
    if (!map) return;
    Reduction reduce = nullptr;
    if (operation < std::size(kReductions)) {
      const auto type = TypeOf(map->dtype);
      reduce = type ? FindReduction(kReductions[operation], *type) : nullptr;
      if (reduce == nullptr)
        return Report(x, op, Hazard::Kind::kTrap, l,
                      "reduces elements of a type that has no such reduction");
    }
    const uint64_t address = BulkAddress(x, op, 0, l) & ~kWindowMask;
    box.resize(size_t{map->Rows()} * map->RowBytes());
    if (!CheckBox(x, op, l, address)) return;
    const std::byte* from = WindowPointer(x, op, l, Space::kShared, address, box.size(),
                                          "tensor copy");
    if (from == nullptr || !NoteBulkRead(x, op, l, address, box.size(), true)) return;
    for (size_t i = 0; i < box.size(); i += kChunk)
      std::memcpy(box.data() + i, from + (Swizzled(*map, address + i) - address), kChunk);
    // A store writes whole chunks, also where the tensor ends within one.
    ForRows(x, op, l, *map, true, [&](uint32_t index, const Row& row) {
      if (row.bytes == 0 || x.stop ||
          !GlobalPointer(x, op, l, row.address, row.bytes, "tensor copy"))
        return;
      const std::byte* line = box.data() + size_t{index} * map->RowBytes() + row.first;
      NoteGlobalWrite(x, op, l, row.address, row.bytes, reduce == nullptr ? line : nullptr,
                      reduce != nullptr);
      WriteRow(row, line, static_cast<uint32_t>(map->strides[0]), reduce);
      if (x.counting.enabled) CountBulk(x, row.address, row.bytes, true);
    });
    x.counting.total.async_copy_bytes += box.size();
  });
}

void NoEffect(BlockState&, const Op&, uint32_t) {}

}  // namespace

Handler TensorCopyHandler(const Form& form, Op& op) {
  const auto& modifiers = form.instruction->modifiers;
  if (modifiers.size() < 5 || !form.Has("async") || !form.Has("bulk")) return nullptr;
  for (const std::string& modifier : modifiers) {  // tile::gather4, im2col::w, …
    if (modifier.starts_with("im2col::") || modifier.starts_with("tile::") ||
        modifier.starts_with("cta_group"))
      return nullptr;
  }
  for (int rank = 1; rank <= 5; ++rank) {
    if (form.Has(std::to_string(rank) + "d")) op.width = static_cast<uint8_t>(rank);
  }
  if (form.Has("prefetch")) return NoEffect;
  CopyForm copy;
  copy.im2col = form.Has("im2col") || form.Has("im2col_no_offs");
  if (copy.im2col && op.width < 3) return nullptr;
  const bool reduces = form.Has("reduce");
  const bool stores = form.Has("bulk_group") && form.Has("shared::cta") && form.Has("global");
  if (stores && form.Has("im2col")) return nullptr;
  if (reduces) {
    const auto at = std::ranges::find_if(kReductions,
                                         [&](std::string_view name) { return form.Has(name); });
    if (at == std::end(kReductions)) return nullptr;
    copy.reduction = static_cast<uint32_t>(at - std::begin(kReductions));
  }
  if (form.Has("im2col")) copy.offsets = op.width - 2u;
  op.dst2 = copy.Pack();
  if (stores) return StoreTensor;
  return form.Has("mbarrier::complete_tx::bytes") && !reduces ? LoadTensor : nullptr;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
