// What a tensor map says: where a tensor lies and which box of it one bulk tensor copy moves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "atunner/base/cuda_abi.h"
#include "atunner/base/result.h"
#include "atunner/model/dtype.h"

namespace atunner {

/// Dimensions from the innermost, whose elements are neighbours, to the outermost.
struct TensorMapSpec {
  DType dtype = DType::kFloat32;
  uint64_t address = 0;                   ///< in device memory, a multiple of 16
  std::vector<uint64_t> dims;             ///< one to five, in elements
  std::vector<uint64_t> strides;          ///< in bytes, multiples of 16; of the second and further dimensions
  std::vector<uint32_t> box;              ///< in elements, 256 at most; the innermost a multiple of 16 bytes
  std::vector<uint32_t> element_strides;  ///< every n-th element of the box, 8 at most; empty = all
  int swizzle_bytes = 0;                  ///< 0 = none, 32, 64 or 128: at least the innermost length of the box
  bool fill_nan = false;                  ///< what lies outside reads as NaN instead of zero; floats only

  /// Bytes that a copy moves and an mbarrier expects, whether inside of the tensor or not.
  uint64_t BoxBytes() const;
};
std::string ToString(const TensorMapSpec& spec);

/// kInvalidInput with the rule of the driver's cuTensorMapEncodeTiled that is broken.
Status Check(const TensorMapSpec& spec);

/// The opaque kernel parameter, `const __grid_constant__ CUtensorMap`. Each device has an encoding of its own.
struct TensorMap {
  alignas(64) std::array<std::byte, 128> bytes{};
};

/// CUtensorMapDataType. Copies do not care for the sign; reductions do.
int TensorMapType(DType dtype);

/// Encodes `spec`, which Check accepts, by the driver's own function.
cuda::Result Encode(cuda::EncodeTiled encode, const TensorMapSpec& spec, TensorMap& map);

}  // namespace atunner
