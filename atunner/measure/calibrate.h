// Fits the time model's constants to micro-benchmarks, each in closed form.
#pragma once

#include "atunner/compile/compiler.h"
#include "atunner/device/calibration.h"
#include "atunner/device/device.h"

namespace atunner {

/// Takes seconds. `probed` is the device's profile with measured rates and latencies in place, as
/// Probe gives it. Constants that a GPU cannot show (clusters before sm_90) stay as expected.
/// kInternal when a kernel does not run.
Result<Calibration> Calibrate(TimedDevice& device, Compiler& compiler, const DeviceProfile& probed);

}  // namespace atunner
