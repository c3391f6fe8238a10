// Tensor maps as the virtual GPU encodes them: 128 bytes that no real GPU would understand.
#pragma once

#include <array>
#include <cstring>
#include <optional>

#include "atunner/model/kernel/tensor_map.h"

namespace atunner::vgpu {

struct VirtualTensorMap {
  static constexpr uint64_t kMark = 0x70614d726f736e54;  // "TnsorMap"

  uint64_t mark = kMark;
  uint64_t address = 0;
  std::array<uint64_t, 5> dims{};
  std::array<uint64_t, 5> strides{};  ///< bytes, the innermost included
  std::array<uint16_t, 5> box{};
  std::array<uint8_t, 5> steps{};  ///< every n-th element of the box
  uint8_t rank = 0;
  DType dtype = DType::kFloat32;
  uint8_t swizzle_chunks = 1;  ///< of 16 bytes that change places; 1 = none
  uint8_t fill_nan = 0;
  uint8_t im2col = 0;              ///< box: channels and pixels
  std::array<int16_t, 3> lower{};  ///< of im2col: PixelCorners
  std::array<int16_t, 3> upper{};

  uint32_t RowBytes() const { return box[0] * static_cast<uint32_t>(strides[0]); }
  uint64_t Rows() const {
    if (im2col) return box[1];
    uint64_t rows = 1;
    for (size_t i = 1; i < rank; ++i) rows *= (uint64_t{box[i]} + steps[i] - 1) / steps[i];
    return rows;
  }
};
static_assert(sizeof(VirtualTensorMap) <= sizeof(TensorMap::bytes) &&
              std::is_trivially_copyable_v<VirtualTensorMap>);

/// Encodes a spec that Check accepts.
inline TensorMap EncodeTensorMap(const TensorMapSpec& spec) {
  VirtualTensorMap map;
  map.address = spec.address;
  map.rank = static_cast<uint8_t>(spec.dims.size());
  map.dtype = spec.dtype;
  map.swizzle_chunks = static_cast<uint8_t>(spec.swizzle_bytes == 0 ? 1 : spec.swizzle_bytes / 16);
  map.fill_nan = spec.fill_nan;
  map.strides[0] = SizeOf(spec.dtype);
  for (size_t i = 0; i < spec.dims.size(); ++i) {
    map.dims[i] = spec.dims[i];
    if (i < spec.box.size()) map.box[i] = static_cast<uint16_t>(spec.box[i]);
    map.steps[i] = static_cast<uint8_t>(
        i == 0 || spec.element_strides.empty() ? 1 : spec.element_strides[i]);
    if (i > 0) map.strides[i] = spec.strides[i - 1];
  }
  map.im2col = spec.im2col.has_value();
  for (size_t i = 0; spec.im2col && i < spec.im2col->lower.size(); ++i) {
    map.lower[i] = static_cast<int16_t>(spec.im2col->lower[i]);
    map.upper[i] = static_cast<int16_t>(spec.im2col->upper[i]);
  }
  TensorMap encoded;
  std::memcpy(encoded.bytes.data(), &map, sizeof map);
  return encoded;
}

/// Empty when these are not 128 bytes that EncodeTensorMap wrote.
inline std::optional<VirtualTensorMap> DecodeTensorMap(const std::byte* bytes) {
  VirtualTensorMap map;
  std::memcpy(static_cast<void*>(&map), bytes, sizeof map);
  if (map.mark != VirtualTensorMap::kMark || map.rank == 0 || map.rank > 5) return std::nullopt;
  for (size_t i = 0; i < map.rank; ++i) {
    if (map.steps[i] == 0 || map.steps[i] > 8) return std::nullopt;
  }
  const size_t lengths = map.im2col ? 2 : map.rank;
  for (size_t i = 0; i < lengths; ++i) {
    if (map.box[i] == 0 || map.box[i] > (map.im2col && i == 1 ? 1024 : 256)) return std::nullopt;
  }
  if (map.im2col && map.rank < 3) return std::nullopt;
  const uint8_t chunks = map.swizzle_chunks;
  const bool known = (chunks == 1 || chunks == 2 || chunks == 4 || chunks == 8) &&
                     map.dtype <= DType::kFloat8E5M2 && map.strides[0] == SizeOf(map.dtype);
  return known ? std::optional(map) : std::nullopt;
}

}  // namespace atunner::vgpu
