#include "atunner/capture/texture_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace atunner::capture {
namespace {

using Shape = TextureSpec::Shape;
using Wrap = TextureSpec::Wrap;

std::string Extents(const TextureSpec& spec) {
  switch (spec.shape) {
    case Shape::k1D:
    case Shape::kLinear:
      return fmt::format("[{}]", spec.width);
    case Shape::k2D:
      return fmt::format("[{},{}]", spec.width, spec.height);
    case Shape::k3D:
      return fmt::format("[{},{},{}]", spec.width, spec.height, spec.depth);
    default:
      return "";
  }
}

const char* WordOf(Wrap wrap) {
  switch (wrap) {
    case Wrap::kRepeat:
      return " repeat";
    case Wrap::kMirror:
      return " mirror";
    case Wrap::kBorder:
      return " border";
    case Wrap::kClamp:
      return "";
  }
  return "";
}

/// Directions in which the texture has an extent.
size_t DirectionsOf(const TextureSpec& spec) {
  return spec.shape == Shape::k3D ? 3 : spec.shape == Shape::k2D ? 2 : 1;
}

}  // namespace

std::string TextureText(const TextureSpec& spec) {
  const std::string extents = Extents(spec);
  const auto wraps_alike = std::all_of(spec.wrap.begin(),
                                       spec.wrap.begin() + static_cast<int64_t>(DirectionsOf(spec)),
                                       [&](Wrap wrap) { return wrap == spec.wrap[0]; });
  if (extents.empty() || !wraps_alike) return "";
  std::string text = std::string(Name(spec.dtype));
  if (spec.channels > 1) text += fmt::format("x{}", spec.channels);
  text += extents;
  if (spec.linear) text += " linear";
  if (spec.unit_coordinates) text += " unit";
  if (spec.unit_values) text += " fractions";
  text += WordOf(spec.wrap[0]);
  if (spec.shape == Shape::kLinear) text += " buffer";
  return ParseTexture(text) ? text : "";
}

}  // namespace atunner::capture
