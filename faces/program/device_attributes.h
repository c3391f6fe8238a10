// What both interfaces tell of the device.
#pragma once

#include "atunner/model/value/device_profile.h"

namespace atunner::program {

constexpr int kVersion = 13000;  ///< of CUDA, that programs are told

/// By the number of CUdevice_attribute, which cudaDeviceAttr shares; 0 for what the device has not.
int DeviceAttribute(const DeviceProfile& profile, int attribute);

}  // namespace atunner::program
