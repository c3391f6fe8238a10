#include "atunner/model/kernel/tensor_map.h"

#include <fmt/format.h>

#include <bit>
#include <string>

namespace atunner {
namespace {

constexpr size_t kMaxRank = 5;
constexpr uint32_t kMaxBox = 256;
constexpr uint32_t kMaxPixels = 1024;
constexpr uint32_t kMaxElementStride = 8;

std::unexpected<Error> Broken(const std::string& what) { return Invalid("tensor map: " + what); }

Status CheckDimension(const TensorMapSpec& spec, size_t i) {
  const std::string which = " of dimension " + std::to_string(i);
  if (spec.dims[i] == 0 || spec.dims[i] > uint64_t{1} << 32)
    return Broken("the length" + which + " is not within 1 and 2^32");
  if (!spec.im2col && (spec.box[i] == 0 || spec.box[i] > kMaxBox))
    return Broken("the box's length" + which + " is not within 1 and 256");
  if (i > 0 && (spec.strides[i - 1] % 16 != 0 || spec.strides[i - 1] >= uint64_t{1} << 40))
    return Broken("the stride" + which + " is no multiple of 16 bytes below 2^40");
  if (spec.element_strides.empty()) return {};
  if (spec.element_strides[i] == 0 || spec.element_strides[i] > kMaxElementStride)
    return Broken("the element stride" + which + " is not within 1 and 8");
  return {};
}

/// Bits of a corner's numbers, by how many of them there are.
constexpr int kCornerBits[] = {16, 8, 5};

Status CheckCorners(const TensorMapSpec& spec) {
  const size_t rank = spec.dims.size();
  const auto& [lower, upper] = *spec.im2col;
  if (rank < 3 || lower.size() != rank - 2 || upper.size() != rank - 2)
    return Broken(
        "im2col wants three to five dimensions, and corners of all but the innermost and the "
        "outermost");
  const int limit = 1 << (kCornerBits[rank - 3] - 1);
  for (size_t i = 0; i < lower.size(); ++i) {
    for (int at : {lower[i], upper[i]}) {
      if (at < -limit || at >= limit)
        return Broken("the corner at " + std::to_string(at) + " is not within " +
                      std::to_string(-limit) + " and " + std::to_string(limit - 1));
    }
  }
  if (spec.box[0] == 0 || spec.box[0] > kMaxBox || spec.box[1] == 0 || spec.box[1] > kMaxPixels)
    return Broken("channels are not within 1 and 256, or pixels not within 1 and 1024");
  return {};
}

/// The arguments that both of the driver's functions have.
struct DriverView {
  explicit DriverView(const TensorMapSpec& spec)
      : memory(reinterpret_cast<void*>(
            spec.address)),  // NOLINT(performance-no-int-to-ptr): a device address
        ones(spec.dims.size(), 1),
        strides(spec.strides.empty() ? &none : spec.strides.data()),
        steps(spec.element_strides.empty() ? ones.data() : spec.element_strides.data()),
        swizzle(spec.swizzle_bytes == 0
                    ? 0
                    : std::countr_zero(static_cast<unsigned>(spec.swizzle_bytes)) - 4) {}
  DriverView(const DriverView&) = delete;

  void* memory;
  std::vector<uint32_t> ones;
  // the driver wants an address even for the strides that one dimension does not have
  uint64_t none = 0;
  const uint64_t* strides;
  const uint32_t* steps;
  int swizzle;
};

}  // namespace

uint64_t TensorMapSpec::BoxBytes() const {
  uint64_t bytes = SizeOf(dtype);
  for (size_t i = 0; i < box.size(); ++i) {
    const bool all = i == 0 || im2col || element_strides.empty();  // the innermost one is ignored
    const uint32_t step = all ? 1 : element_strides[i];
    bytes *= (box[i] + step - 1) / step;
  }
  return bytes;
}

std::string ToString(const TensorMapSpec& spec) {
  std::string text = fmt::format(
      "{} at {:x}: dims {}, strides {}, box {}, element strides {}, swizzle {}{}", Name(spec.dtype),
      spec.address, fmt::join(spec.dims, "×"), fmt::join(spec.strides, "×"),
      fmt::join(spec.box, "×"), fmt::join(spec.element_strides, "×"), spec.swizzle_bytes,
      spec.fill_nan ? ", NaN outside" : "");
  if (spec.im2col)
    text += fmt::format(", im2col from {} to {}", fmt::join(spec.im2col->lower, "×"),
                        fmt::join(spec.im2col->upper, "×"));
  return text;
}

Status Check(const TensorMapSpec& spec) {
  const size_t rank = spec.dims.size();
  if (rank == 0 || rank > kMaxRank) return Broken("one to five dimensions are possible");
  if (spec.box.size() != (spec.im2col ? 2 : rank) || spec.strides.size() != rank - 1 ||
      (!spec.element_strides.empty() && spec.element_strides.size() != rank))
    return Broken("box, strides and element strides do not fit the " + std::to_string(rank) +
                  " dimensions");
  if (spec.address % 16 != 0) return Broken("the address is no multiple of 16 bytes");
  for (size_t i = 0; i < rank; ++i) ATUNNER_RETURN_IF_ERROR(CheckDimension(spec, i));
  if (spec.im2col) ATUNNER_RETURN_IF_ERROR(CheckCorners(spec));
  const uint64_t inner = spec.box[0] * SizeOf(spec.dtype);
  if (inner % 16 != 0) return Broken("the box's innermost length is no multiple of 16 bytes");
  const int swizzle = spec.swizzle_bytes;
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return Broken("swizzling goes by 32, 64 or 128 bytes");
  if (swizzle != 0 && inner > static_cast<uint64_t>(swizzle))
    return Broken("the box's innermost length of " + std::to_string(inner) +
                  " bytes is more than the swizzled " + std::to_string(swizzle));
  if (spec.fill_nan && KindOf(spec.dtype) != DTypeKind::kFloat)
    return Broken("only floats can be filled with NaN");
  return {};
}

int TensorMapType(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 8;
    case DType::kFloat32:
      return 7;
    case DType::kFloat16:
      return 6;
    case DType::kBFloat16:
      return 9;
    case DType::kInt64:
      return 5;
    case DType::kUInt64:
      return 4;
    case DType::kInt32:
      return 3;
    case DType::kUInt32:
      return 2;
    case DType::kInt16:
    case DType::kUInt16:
      return 1;
    default:
      return 0;
  }
}

cuda::Result Encode(cuda::EncodeTiled encode, const TensorMapSpec& spec, TensorMap& map) {
  const DriverView view(spec);
  return encode(map.bytes.data(), TensorMapType(spec.dtype),
                static_cast<uint32_t>(spec.dims.size()), view.memory, spec.dims.data(),
                view.strides, spec.box.data(), view.steps, cuda::kTensorMapNoInterleave,
                view.swizzle, cuda::kTensorMapPromoteTo128Bytes, spec.fill_nan ? 1 : 0);
}

cuda::Result Encode(cuda::EncodeIm2col encode, const TensorMapSpec& spec, TensorMap& map) {
  const DriverView view(spec);
  return encode(map.bytes.data(), TensorMapType(spec.dtype),
                static_cast<uint32_t>(spec.dims.size()), view.memory, spec.dims.data(),
                view.strides, spec.im2col->lower.data(), spec.im2col->upper.data(), spec.box[0],
                spec.box[1], view.steps, cuda::kTensorMapNoInterleave, view.swizzle,
                cuda::kTensorMapPromoteTo128Bytes, spec.fill_nan ? 1 : 0);
}

}  // namespace atunner
