// Where a launch stands under the roofs of its GPU.
#pragma once

#include "atunner/evidence/counters.h"
#include "atunner/model/value/device_profile.h"

namespace atunner::evidence {

/// float32 operations on the usual pipe; each instruction counts as a multiply-add, so `flops` and
/// what follows from it are upper bounds.
struct Roofline {
  double flops = 0;            ///< FLOP
  double intensity = 0;        ///< FLOP per byte of DRAM; 0 without traffic
  double flop_rate = 0;        ///< FLOP/s
  double attainable_rate = 0;  ///< FLOP/s that this intensity allows on the GPU
  double ridge = 0;            ///< FLOP per byte from which arithmetic bounds
};

/// From the counters of the time, the float32 pipe and DRAM; zeros where they are missing.
Roofline RooflineOf(const CounterSet& counters, const DeviceProfile& profile);

}  // namespace atunner::evidence
