// Bulk tensor copies on any device that encodes tensor maps (sanitizer/tensor_copies.cu), against
// copies made here.
#pragma once

#include <string>
#include <vector>

#include "atunner/device/device.h"

namespace atunner::vgpu {

/// Kernels that CheckTensorCopy launches.
std::vector<std::string> TensorCopyEntries();
std::vector<std::string> TensorCopyNames();
/// The differences in the case of that index, or ""; `module` is the compiled file. A launch that
/// fails on a real GPU leaves a context of no use.
std::string CheckTensorCopy(Device& device, LoadedModule& module, size_t index);
/// Loads by maps whose fields the kernel replaces (tensormap.replace) and publishes: what differs,
/// a line a case.
std::vector<std::string> CheckReplacedMaps(Device& device);

}  // namespace atunner::vgpu
