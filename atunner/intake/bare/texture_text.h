// Describes the texture that a source makes, in the format of ParseTexture.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "atunner/intake/cuda/cuda_syntax.h"

namespace atunner {

/// True for cudaTextureObject_t and cudaSurfaceObject_t.
bool IsTextureType(const std::string& type);

/// The value of a host expression; nullopt if it is unknown.
using HostNumber = std::function<std::optional<int64_t>(TokenRange)>;

/// Size, type and settings of the host's textures, e.g. "float32x4[512,512] linear unit". nullopt
/// if their arrays differ or their size is unknown. Layered and cube textures are not supported.
std::optional<std::string> TextureText(const CudaSyntax& syntax, const HostNumber& number);

}  // namespace atunner
