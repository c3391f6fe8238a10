// Tensor maps (CUtensorMap): the layout of a tensor in memory, and the box of it that one bulk
// tensor copy moves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "atunner/base/cuda_abi.h"
#include "atunner/base/result.h"
#include "atunner/model/value/dtype.h"

namespace atunner {

/// Bounding box of im2col mode, in which a copy takes the pixels of images one after another, along
/// rows, then columns. Its corners are offsets from the first and from the last pixel along width,
/// height and depth: one number for each dimension except channels (innermost) and images
/// (outermost).
struct PixelCorners {
  std::vector<int> lower;  ///< of 16 bits for one dimension, 8 for two, 5 for three
  std::vector<int> upper;
};

/// Dimensions from the innermost, whose elements are neighbours, to the outermost.
struct TensorMapSpec {
  DType dtype = DType::kFloat32;
  uint64_t address = 0;        ///< in device memory, a multiple of 16
  std::vector<uint64_t> dims;  ///< one to five, in elements
  /// In bytes, multiples of 16, for the second and further dimensions.
  std::vector<uint64_t> strides;
  /// In elements, 256 at most; the innermost a multiple of 16 bytes
  std::vector<uint32_t> box;
  std::vector<uint32_t> element_strides;  ///< every n-th element of the box, 8 at most; empty = all
  /// 0 = none, 32, 64 or 128: at least the innermost length of the box
  int swizzle_bytes = 0;
  /// Elements outside of the tensor read as NaN instead of zero; floats only.
  bool fill_nan = false;
  /// Im2col mode, of three to five dimensions: `box` is channels and pixels (1024 at most), element
  /// strides are steps between pixels.
  std::optional<PixelCorners> im2col;

  /// Bytes that a copy moves and an mbarrier expects, whether inside of the tensor or not.
  uint64_t BoxBytes() const;
};
std::string ToString(const TensorMapSpec& spec);

/// kInvalidInput with the rule of the driver's cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col
/// that is broken.
Status Check(const TensorMapSpec& spec);

/// The opaque kernel parameter, `const __grid_constant__ CUtensorMap`. Each device has an encoding
/// of its own.
struct TensorMap {
  alignas(64) std::array<std::byte, 128> bytes{};
};

/// CUtensorMapDataType. The sign matters to reductions and not to copies.
int TensorMapType(DType dtype);

/// Encodes `spec`, which Check accepts, by the driver's own functions; of im2col mode by the second
/// one.
cuda::Result Encode(cuda::EncodeTiled encode, const TensorMapSpec& spec, TensorMap& map);
cuda::Result Encode(cuda::EncodeIm2col encode, const TensorMapSpec& spec, TensorMap& map);

}  // namespace atunner
