// Tensor maps that kernels change: tensormap.replace, and the copy that publishes one,
// tensormap.cp_fenceproxy.
#include <algorithm>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/checks/pending.h"
#include "atunner/vgpu/checks/synchronisation.h"
#include "atunner/vgpu/instructions/handlers.h"
#include "atunner/vgpu/instructions/tensor_map.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {
namespace {

constexpr uint64_t kMapBytes = sizeof(TensorMap::bytes);
constexpr uint64_t kMapAlignment = 64;

/// In the order of the ISA's table. A field is found by its place here, which Op::variant holds.
constexpr std::string_view kFields[] = {
    "global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
    "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode"};
enum Field : uint8_t {
  kAddress,
  kRank,
  kBox,
  kDim,
  kStride,
  kElementStride,
  kElement,
  kInterleave,
  kSwizzle,
  kFill
};
/// The ISA's numbers of element types. What flushes subnormals, and float32 cut to tf32, is copied
/// like float32 here.
constexpr DType kElements[] = {DType::kUInt8,   DType::kUInt16,  DType::kUInt32,   DType::kInt32,
                               DType::kUInt64,  DType::kInt64,   DType::kFloat16,  DType::kFloat32,
                               DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat32,
                               DType::kFloat32};

/// Sets a field. Returns why the value is invalid, or "".
std::string SetField(VirtualTensorMap& map, uint8_t field, size_t ordinal, uint64_t value) {
  const auto unknown = [&] {
    return std::string(kFields[field]) + " " + std::to_string(value) + " does not exist";
  };
  switch (field) {
    case kAddress:
      map.address = value;
      return value % 16 == 0 ? "" : "the tensor's address " + Hex(value) + " is no multiple of 16";
    case kRank:
      map.rank = static_cast<uint8_t>(std::min<uint64_t>(value, 255) + 1);
      return value < map.dims.size() ? "" : unknown();
    case kBox:
      map.box[ordinal] = static_cast<uint16_t>(std::min<uint64_t>(value, 0xffff));
      return "";
    case kDim:
      map.dims[ordinal] = value;
      return "";
    case kStride:
      map.strides[ordinal + 1] = value;
      return value % 16 == 0 ? "" : "the stride " + std::to_string(value) + " is no multiple of 16";
    case kElementStride:
      map.steps[ordinal] = static_cast<uint8_t>(std::min<uint64_t>(value, 255));
      return "";
    case kElement:
      if (value >= std::size(kElements)) return unknown();
      map.dtype = kElements[value];
      map.strides[0] = SizeOf(map.dtype);
      return "";
    case kInterleave:
      return value == 0 ? "" : "interleaved layouts are not executed here";
    case kSwizzle:
      if (value > 3) return unknown();
      map.swizzle_chunks = static_cast<uint8_t>(1u << value);
      return "";
    default:
      map.fill_nan = value == 1;
      return value <= 1 ? "" : unknown();
  }
}

/// The 128 bytes of a map in memory that may be written, or nullptr after reporting.
std::byte* MapAt(BlockState& x, const Op& op, int lane, Space space, uint64_t address) {
  if (!CheckAligned(x, op, lane, address, kMapAlignment)) return nullptr;
  if (space == Space::kGlobal) return GlobalPointer(x, op, lane, address, kMapBytes, "tensor map");
  if (space == Space::kShared && address + kMapBytes <= x.shared.bytes.size())
    return x.shared.bytes.data() + address;
  Report(x, op, Hazard::Kind::kOutOfBounds, lane,
         "changes a tensor map at " + Hex(address) +
             ", which is neither in global memory nor in the block's");
  return nullptr;
}

void Replace(BlockState& x, const Op& op, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    uint64_t address = AddressOf(x, op, l);
    const Space space = Resolve(op.space, address);
    std::byte* at = x.stop ? nullptr : MapAt(x, op, l, space, address);
    if (at == nullptr) return;
    const bool shadowed = space == Space::kShared && x.checks.any;
    if (shadowed) ShadowRead(x, op, l, address, kMapBytes);
    VirtualTensorMap map;
    std::memcpy(static_cast<void*>(&map), at, sizeof map);
    if (map.mark != VirtualTensorMap::kMark)
      return Report(x, op, Hazard::Kind::kTrap, l,
                    "changes 128 bytes that are no tensor map of this device");
    const uint32_t* value = x.Source(op.src[1]);
    const std::string wrong = SetField(map, op.variant, op.target,
                                       op.width == 8 ? Lane<uint64_t>::Get(value, l) : value[l]);
    if (!wrong.empty()) return Report(x, op, Hazard::Kind::kTrap, l, "tensor map: " + wrong);
    std::memcpy(at, &map, sizeof map);
    if (shadowed) ShadowWrite(x, op, l, address, kMapBytes, false, false);
    if (space == Space::kGlobal) NoteGlobalWrite(x, op, l, address, kMapBytes);
  });
}

/// All lanes name the same places: one copy.
void Publish(BlockState& x, const Op& op, uint32_t mask) {
  const int l = std::countr_zero(mask);
  const uint64_t to_address = AddressOf(x, op, l);
  const uint32_t* from_slot = x.Source(op.src[1]);
  const uint64_t from_address = ((op.width == 8 ? Lane<uint64_t>::Get(from_slot, l)
                                                : from_slot[l]) &
                                 ~kWindowMask) +
                                op.target;
  const std::byte* from = MapAt(x, op, l, Space::kShared, from_address);
  std::byte* to = from == nullptr ? nullptr : MapAt(x, op, l, Space::kGlobal, to_address);
  if (to == nullptr) return;
  if (x.checks.any) ShadowRead(x, op, l, from_address, kMapBytes);
  NoteGlobalWrite(x, op, l, to_address, kMapBytes, from);
  std::memcpy(to, from, kMapBytes);
  NoteFence(x, ~0u, false);
  OrderCluster(x);
  SeeAll(x);
}

}  // namespace

Handler TensorMapHandler(const Form& form, Op& op) {
  if (form.Has("cp_fenceproxy")) {
    op.flow = Flow::kAligned;
    return form.Has("sync") && form.Has("aligned") ? Publish : nullptr;
  }
  const auto* field = std::ranges::find_if(kFields,
                                           [&](std::string_view name) { return form.Has(name); });
  if (!form.Has("replace") || !form.Has("tile") || field == std::end(kFields)) return nullptr;
  op.variant = static_cast<uint8_t>(field - kFields);
  return Replace;
}

size_t TensorMapOrdinals(const Op& op) {
  return op.variant == kStride                                                      ? 4
         : op.variant == kBox || op.variant == kDim || op.variant == kElementStride ? 5
                                                                                    : 0;
}

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
