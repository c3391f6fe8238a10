// A texture of a launch as text: what it is of, and how kernels read it. Texels are not recorded.
#pragma once

#include <string>

#include "atunner/model/kernel/texture.h"

namespace atunner::capture {

/// The text that ParseTexture reads, "float32x4[64,32] linear unit"; "" for layers, cubes and
/// textures whose directions wrap differently, which have no text.
std::string TextureText(const TextureSpec& spec);

}  // namespace atunner::capture
