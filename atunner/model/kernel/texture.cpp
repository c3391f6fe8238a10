#include "atunner/model/kernel/texture.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "atunner/base/random.h"

namespace atunner {
namespace {

using Shape = TextureSpec::Shape;
constexpr uint32_t kMostTexels = 1u << 15;  // in a direction of a plane
constexpr uint32_t kMostDepth = 1u << 11;   // layers, or the third direction

constexpr uint64_t kMostBytes = uint64_t{1} << 32;  // of one that is made up
constexpr uint32_t kMostLinear = 1u << 27;

bool IsFlat(Shape shape) {
  return shape == Shape::k1D || shape == Shape::k1DLayered || shape == Shape::kLinear;
}
bool IsDeep(Shape shape) {
  return shape != Shape::k1D && shape != Shape::k2D && shape != Shape::kLinear;
}

/// A number of at most 32 bits, without sign.
bool Read(std::string_view text, uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// "64,32" of "f32[64,32]".
bool ReadExtents(const std::string& text, TextureSpec& spec) {
  std::istringstream pieces(text);
  uint32_t* const extents[] = {&spec.width, &spec.height, &spec.depth};
  size_t dims = 0;
  for (std::string piece; std::getline(pieces, piece, ',');) {
    if (dims == 3 || !Read(piece, *extents[dims])) return false;
    ++dims;
  }
  spec.shape = dims == 1 ? Shape::k1D : dims == 2 ? Shape::k2D : Shape::k3D;
  return dims > 0 && !text.ends_with(',');
}

/// One of the words behind the extents.
bool ReadWord(const std::string& word, TextureSpec& spec) {
  using Wrap = TextureSpec::Wrap;
  spec.linear |= word == "linear";
  spec.unit_coordinates |= word == "unit";
  spec.unit_values |= word == "fractions";
  if (word == "buffer") spec.shape = Shape::kLinear;
  const Wrap wrap = word == "repeat"   ? Wrap::kRepeat
                    : word == "mirror" ? Wrap::kMirror
                    : word == "border" ? Wrap::kBorder
                                       : Wrap::kClamp;
  if (wrap != Wrap::kClamp) spec.wrap.fill(wrap);
  return wrap != Wrap::kClamp || word == "linear" || word == "unit" || word == "fractions" ||
         word == "buffer";
}

}  // namespace

Result<TextureSpec> ParseTexture(const std::string& text) {
  TextureSpec spec;
  const size_t open = std::min(text.find('['), text.size());
  const size_t close = std::min(text.find(']', open), text.size());
  const size_t times = std::min(text.find('x'), open);
  const auto dtype = ParseDType(text.substr(0, times));
  const bool channels = times == open ||
                        Read(std::string_view(text).substr(times + 1, open - times - 1),
                             spec.channels);
  if (!dtype || !channels || close == text.size() ||
      !ReadExtents(text.substr(open + 1, close - open - 1), spec))
    return Invalid("what the texture is of is not clear: '" + text + "'", "",
                   "write f32[64,32] or u8x4[640,480]");
  spec.dtype = *dtype;
  std::istringstream words(text.substr(close + 1));
  for (std::string word; words >> word;) {
    if (!ReadWord(word, spec))
      return Invalid("'" + word + "' says nothing about a texture", "",
                     "there are linear, unit, fractions, repeat, mirror, border and buffer");
  }
  ATUNNER_RETURN_IF_ERROR(Check(spec));
  if (spec.Bytes() > kMostBytes) return Invalid("a texture of more than 4 GB: '" + text + "'");
  return spec;
}

std::vector<std::byte> RandomTexels(const TextureSpec& spec) {
  std::vector<std::byte> texels(spec.Bytes());
  Random random(1);
  for (std::byte& byte : texels) byte = static_cast<std::byte>(random.Below(256));
  for (size_t i = 0; IsFloat(spec.dtype) && i < texels.size() / SizeOf(spec.dtype); ++i)
    StoreElement(spec.dtype, texels.data(), i, static_cast<double>(random.Below(4096)) / 4096);
  return texels;
}

Status Check(const TextureSpec& spec) {
  const size_t bytes = SizeOf(spec.dtype);
  const bool integer = KindOf(spec.dtype) == DTypeKind::kSigned ||
                       KindOf(spec.dtype) == DTypeKind::kUnsigned;
  if (!(integer && bytes <= 4) && spec.dtype != DType::kFloat16 && spec.dtype != DType::kFloat32)
    return Invalid("textures hold float16, float32 and integers of up to 32 bits",
                   std::string(Name(spec.dtype)));
  if (spec.channels != 1 && spec.channels != 2 && spec.channels != 4)
    return Invalid("texels have 1, 2 or 4 channels");
  if (spec.width == 0 || spec.height == 0 || spec.depth == 0)
    return Invalid("a texture has at least one texel");
  const uint32_t most = spec.shape == Shape::kLinear ? kMostLinear : kMostTexels;
  if (spec.width > most || spec.height > kMostTexels || spec.depth > kMostDepth)
    return Invalid("a texture has at most 32768 texels in a direction and 2048 layers");
  if (IsFlat(spec.shape) && spec.height != 1)
    return Invalid("a texture of one dimension has height 1");
  if (!IsDeep(spec.shape) && spec.depth != 1)
    return Invalid("a texture without layers has depth 1");
  if (spec.shape == Shape::kCube && (spec.depth != 6 || spec.width != spec.height))
    return Invalid("a cube has six square faces");
  if (spec.shape == Shape::kCubeLayered && (spec.depth % 6 != 0 || spec.width != spec.height))
    return Invalid("layered cubes have six square faces each");
  if (spec.shape == Shape::kLinear && (spec.linear || spec.unit_coordinates))
    return Invalid("linear memory is read by whole coordinates");
  if (spec.unit_values && (!integer || bytes > 2))
    return Invalid("integers of 8 and 16 bits are read as fractions");
  if (spec.linear && integer && !spec.unit_values)
    return Invalid("integers are blended as fractions only");
  for (const TextureSpec::Wrap wrap : spec.wrap) {
    const bool repeats = wrap == TextureSpec::Wrap::kRepeat || wrap == TextureSpec::Wrap::kMirror;
    if (repeats && !spec.unit_coordinates)
      return Invalid("textures repeat where coordinates go from 0 to 1");
  }
  return {};
}

}  // namespace atunner
