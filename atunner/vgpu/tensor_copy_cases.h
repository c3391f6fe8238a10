// Bulk tensor copies on any device that encodes tensor maps (sanitizer/tensor_copies.cu), against copies made here.
#pragma once

#include <string>
#include <vector>

#include "atunner/device/device.h"

namespace atunner::vgpu {

/// Kernels that CheckTensorCopies launches.
std::vector<std::string> TensorCopyEntries();
/// What differs, a line a case; `module` is the compiled file.
std::vector<std::string> CheckTensorCopies(Device& device, LoadedModule& module);

}  // namespace atunner::vgpu
