// What textures a source makes, in the words of ParseTexture.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

bool IsTextureType(const std::string& type);

/// The value of an expression of the host, where it is known.
using HostNumber = std::function<std::optional<int64_t>(TokenRange)>;

/// The only texture that the host makes, or what all that it makes have in common; none where their
/// arrays differ, or where it does not say how large they are. Arrays of layers and cubes are not
/// looked for.
std::optional<std::string> TextureText(const CudaSyntax& syntax, const HostNumber& number);

}  // namespace atunner
