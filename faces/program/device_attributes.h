// Device attributes, which both interfaces return.
#pragma once

#include "atunner/model/value/device_profile.h"

namespace atunner::program {

constexpr int kVersion = 13000;  ///< CUDA version that programs get

/// The attribute with this number of CUdevice_attribute, which is the same in cudaDeviceAttr; 0 for
/// features that the device does not have.
int DeviceAttribute(const DeviceProfile& profile, int attribute);

}  // namespace atunner::program
