#include "faces/program/device_attributes.h"

#include <cstdint>

#include "atunner/model/value/capabilities.h"

namespace atunner::program {

int DeviceAttribute(const DeviceProfile& profile, int attribute) {
  switch (attribute) {
    case 1:  // threads of a block, its x and y
    case 2:
    case 3:
      return 1024;
    case 4:
      return 64;
    case 5:  // blocks of a grid along x
      return INT32_MAX;
    case 6:
    case 7:
      return 65535;
    case 8:  // shared memory that needs no asking
      return 48 << 10;
    case 9:  // constant memory
      return 64 << 10;
    case 10:  // warp
      return 32;
    case 11:  // pitch
      return INT32_MAX;
    case 12:  // registers of a block, of an SM
    case 82:
      return profile.registers_per_sm;
    case 13:
      return static_cast<int>(profile.clock_ghz * 1e6);
    case 14:  // textures
      return 512;
    case 16:
      return profile.sms;
    case 36:
      return static_cast<int>(profile.dram_gbps * 1e6 / 1280);  // of 5120 bits at two per clock
    case 37:
      return 5120;
    case 38:
      return static_cast<int>(profile.l2_bytes);
    case 39:
      return 32 * profile.max_warps_per_sm;
    case 75:
      return profile.cc_major;
    case 76:
      return profile.cc_minor;
    case 81:
      return profile.shared_per_sm;
    case 97:
      return profile.shared_per_block;
    case 106:
      return profile.max_blocks_per_sm;
    case 111:
      return profile.shared_reserved_per_block;
    case 120:  // clusters
      return CapabilitiesOf(profile).clusters;
    case 19:  // maps the host's memory
    case 31:  // concurrent kernels
    case 40:  // copy engines
    case 41:  // unified addresses
    case 78:  // priorities
    case 79:  // global, local L1
    case 80:
    case 83:   // managed memory
    case 89:   // and at the same time
    case 90:   // preemption
    case 95:   // cooperative launches
    case 115:  // memory pools
      return 1;
    default:
      return 0;
  }
}

}  // namespace atunner::program
