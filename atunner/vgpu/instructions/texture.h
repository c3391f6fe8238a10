// The options of a texture or surface instruction, packed into Op::imm.
#pragma once

#include <array>

#include "atunner/vgpu/checks/access.h"
#include "atunner/vgpu/instructions/handlers.h"

namespace atunner::vgpu::ATUNNER_VGPU_ISA {

enum class Geometry : uint8_t {
  k1D,
  k2D,
  k3D,
  k1DLayered,
  k2DLayered,
  kCube,
  kCubeLayered,
  k2DSamples,
  k2DSamplesLayered
};
enum class Outside : uint8_t { kTrap, kClamp, kZero };
enum class Reduction : uint8_t { kAdd, kMin, kMax, kAnd, kOr };

struct TextureOptions {
  Geometry geometry = Geometry::k1D;
  Outside outside = Outside::kTrap;
  Reduction reduction = Reduction::kAdd;
  /// Destinations, or stored values: the first entries of the operation's list
  uint8_t results = 1;
  uint8_t component = 0;  ///< of tld4
  uint8_t query = 0;      ///< width, height, depth, layers
  bool float_coordinates : 1 = false;
  bool formatted : 1 = false;  ///< a surface's x counts texels, not bytes
  bool surface : 1 = false;
  bool is_signed : 1 = false;
  bool half : 1 = false;     ///< results are float16
  bool packed : 1 = false;   ///< two in a register
  bool shifted : 1 = false;  ///< the list has offsets in texels behind the coordinates
  uint8_t unused_bits : 1 = 0;
  uint8_t unused = 0;
};
static_assert(sizeof(TextureOptions) == sizeof(uint64_t));

/// Coordinates besides the layer; the number of a sample is one.
int DimsOf(Geometry geometry);
inline bool IsLayered(Geometry geometry) {
  return geometry == Geometry::k1DLayered || geometry == Geometry::k2DLayered ||
         geometry == Geometry::kCubeLayered || geometry == Geometry::k2DSamplesLayered;
}
inline bool IsSampled(Geometry geometry) {
  return geometry == Geometry::k2DSamples || geometry == Geometry::k2DSamplesLayered;
}
inline bool IsCube(Geometry geometry) {
  return geometry == Geometry::kCube || geometry == Geometry::kCubeLayered;
}
bool Suits(Geometry geometry, TextureSpec::Shape shape, bool whole_coordinates);

/// The texture of a lane's handle; nullptr after reporting that there is none.
TextureData* FindTexture(BlockState& x, const Op& op, int lane, bool surface);

/// Which texels lanes read, for the counters.
class Addresses {
 public:
  Addresses(BlockState& x, uint64_t bytes, bool store) : x_(x), bytes_(bytes), store_(store) {}
  ~Addresses() {
    if (x_.counting.enabled && mask_ != 0)
      CountGlobal(x_, of_, mask_, static_cast<uint32_t>(bytes_), store_);
  }
  void Note(int lane, const std::byte* texel) {
    if (texel == nullptr) return;
    mask_ |= 1u << lane;
    of_[lane] = reinterpret_cast<uint64_t>(texel);
  }
  void SetBytes(uint64_t bytes) { bytes_ = bytes; }

 private:
  BlockState& x_;
  uint64_t bytes_;
  bool store_;
  uint32_t mask_ = 0;
  uint64_t of_[kLanes] = {};
};

/// The modifier that says how many dimensions there are; false when there is none that is known.
bool ReadGeometry(const Form& form, TextureOptions& o);
/// The place in `names` of a modifier.
template <class T, size_t kCount>
bool ReadNamed(const Form& form, const std::array<std::string_view, kCount>& names, T& value) {
  for (size_t i = 0; i < kCount; ++i) {
    if (!form.Has(names[i])) continue;
    value = static_cast<T>(i);
    return true;
  }
  return false;
}
/// suld, sust, sured.
Handler SurfaceHandler(const Form& form, TextureOptions& o, Op& op);

}  // namespace atunner::vgpu::ATUNNER_VGPU_ISA
