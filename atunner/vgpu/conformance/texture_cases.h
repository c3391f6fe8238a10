// Textures and surfaces on any device: what single instructions read and write, against values
// worked out by hand.
#pragma once

#include <string>
#include <vector>

#include "atunner/device/device.h"

namespace atunner::vgpu {

std::vector<std::string> TextureCaseNames();
/// The differences in the case of that index, or "".
std::string CheckTextureCase(Device& device, size_t index);

}  // namespace atunner::vgpu
