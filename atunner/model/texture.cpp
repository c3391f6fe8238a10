#include "atunner/model/texture.h"

namespace atunner {
namespace {

using Shape = TextureSpec::Shape;
constexpr uint32_t kMostTexels = 1u << 15;  // in a direction of a plane
constexpr uint32_t kMostDepth = 1u << 11;   // layers, or the third direction

constexpr uint32_t kMostLinear = 1u << 27;

bool IsFlat(Shape shape) { return shape == Shape::k1D || shape == Shape::k1DLayered || shape == Shape::kLinear; }
bool IsDeep(Shape shape) { return shape != Shape::k1D && shape != Shape::k2D && shape != Shape::kLinear; }

}  // namespace

Status Check(const TextureSpec& spec) {
  const size_t bytes = SizeOf(spec.dtype);
  const bool integer = KindOf(spec.dtype) == DTypeKind::kSigned || KindOf(spec.dtype) == DTypeKind::kUnsigned;
  if (!(integer && bytes <= 4) && spec.dtype != DType::kFloat16 && spec.dtype != DType::kFloat32)
    return Invalid("textures hold float16, float32 and integers of up to 32 bits", std::string(Name(spec.dtype)));
  if (spec.channels != 1 && spec.channels != 2 && spec.channels != 4) return Invalid("texels have 1, 2 or 4 channels");
  if (spec.width == 0 || spec.height == 0 || spec.depth == 0) return Invalid("a texture has at least one texel");
  const uint32_t most = spec.shape == Shape::kLinear ? kMostLinear : kMostTexels;
  if (spec.width > most || spec.height > kMostTexels || spec.depth > kMostDepth)
    return Invalid("a texture has at most 32768 texels in a direction and 2048 layers");
  if (IsFlat(spec.shape) && spec.height != 1) return Invalid("a texture of one dimension has height 1");
  if (!IsDeep(spec.shape) && spec.depth != 1) return Invalid("a texture without layers has depth 1");
  if (spec.shape == Shape::kCube && (spec.depth != 6 || spec.width != spec.height))
    return Invalid("a cube has six square faces");
  if (spec.shape == Shape::kCubeLayered && (spec.depth % 6 != 0 || spec.width != spec.height))
    return Invalid("layered cubes have six square faces each");
  if (spec.shape == Shape::kLinear && (spec.linear || spec.unit_coordinates))
    return Invalid("linear memory is read by whole coordinates");
  if (spec.unit_values && (!integer || bytes > 2)) return Invalid("integers of 8 and 16 bits are read as fractions");
  if (spec.linear && integer && !spec.unit_values) return Invalid("integers are blended as fractions only");
  for (const TextureSpec::Wrap wrap : spec.wrap) {
    const bool repeats = wrap == TextureSpec::Wrap::kRepeat || wrap == TextureSpec::Wrap::kMirror;
    if (repeats && !spec.unit_coordinates) return Invalid("textures repeat where coordinates go from 0 to 1");
  }
  return {};
}

}  // namespace atunner
