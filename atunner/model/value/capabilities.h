// The features of a GPU's instruction set as flags, so that no other code compares compute
// capabilities.
#pragma once

#include "atunner/model/value/device_profile.h"

namespace atunner {

struct Capabilities {
#define ATUNNER_CAPABILITY(name, first, last, meaning) bool name = false;
#include "atunner/model/value/capabilities.def"
#undef ATUNNER_CAPABILITY
};

/// The row of `capabilities.def`'s table for compute capability `major`.`minor`. Example: 8.6 has
/// cp_async and mma_16bit, and has neither clusters nor wgmma.
constexpr Capabilities CapabilitiesOf(int major, int minor) {
  const int cc = major * 10 + minor;
  Capabilities capabilities;
#define ATUNNER_CAPABILITY(name, first, last, meaning) \
  capabilities.name = (first) <= cc && cc <= (last);
#include "atunner/model/value/capabilities.def"
#undef ATUNNER_CAPABILITY
  return capabilities;
}
inline Capabilities CapabilitiesOf(const DeviceProfile& profile) {
  return CapabilitiesOf(profile.cc_major, profile.cc_minor);
}

}  // namespace atunner
