// What a launch can learn from special registers about the GPU that it runs on, and about the time.
#pragma once

#include <cstdint>

namespace atunner::vgpu {

/// The defaults are those of a small GPU, for programs that run without a device profile.
struct SystemFacts {
  uint32_t sms = 16;
  uint32_t warps_per_sm = 64;    ///< that an SM can hold: %nwarpid
  uint32_t blocks_per_sm = 1;    ///< blocks of the launch that an SM holds at once
  uint32_t reserved_shared = 0;  ///< bytes of shared memory that the system takes of each block
  double clocks_per_ns = 1.5;
  uint64_t grid = 1;       ///< number of the launch: %gridid
  uint64_t began_ns = 0;   ///< %globaltimer when the launch begins, in nanoseconds since 1970
  uint64_t booted_ns = 0;  ///< %globaltimer when the clocks of the SMs were zero
  /// Chooses, among other things, which SM takes a block when several have room for it.
  uint64_t seed = 0;
};

}  // namespace atunner::vgpu
