// Textures and surfaces: texels in an array of the device's own layout, and how kernels read them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "atunner/base/result.h"
#include "atunner/model/value/dtype.h"

namespace atunner {

struct TextureSpec {
  /// kLinear: tex1Dfetch.
  enum class Shape : uint8_t {
    k1D,
    k2D,
    k3D,
    k1DLayered,
    k2DLayered,
    kCube,
    kCubeLayered,
    kLinear
  };
  /// How coordinates outside of the texture are treated; the border is zero.
  enum class Wrap : uint8_t { kRepeat, kClamp, kMirror, kBorder };

  Shape shape = Shape::k2D;
  /// Type of a channel: float16, float32, or an integer of 8, 16 or 32 bits.
  DType dtype = DType::kFloat32;
  uint32_t channels = 1;  ///< 1, 2 or 4
  uint32_t width = 1;     ///< in texels
  uint32_t height = 1;
  uint32_t depth = 1;  ///< or the number of layers; six faces for each cube
  std::array<Wrap, 3> wrap{Wrap::kClamp, Wrap::kClamp, Wrap::kClamp};
  bool linear = false;            ///< neighbours are blended; otherwise the nearest one is taken
  bool unit_coordinates = false;  ///< coordinates go from 0 to 1, not to the extents
  /// Integers of 8 and 16 bits are read as fractions of their largest value
  bool unit_values = false;

  uint64_t TexelBytes() const { return channels * SizeOf(dtype); }
  uint64_t Bytes() const { return uint64_t{width} * height * depth * TexelBytes(); }
};

/// "f32x4[64,32]": the type of a channel, how many of them where there is more than one, the
/// extents in texels of one to three dimensions; behind them words: "linear" (neighbours are
/// blended), "unit" (coordinates), "fractions" (values), "repeat", "mirror" or "border" (outside),
/// "buffer" (linear memory). kInvalidInput says what is not clear.
Result<TextureSpec> ParseTexture(const std::string& text);

/// Pseudo-random texels for a texture without data: floats from 0 to 1, integers of all values.
/// They are the same every time.
std::vector<std::byte> RandomTexels(const TextureSpec& spec);

/// kInvalidInput with the rule of CUDA's texture objects that is broken.
Status Check(const TextureSpec& spec);

}  // namespace atunner
