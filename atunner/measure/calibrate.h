// Fits the time model's constants to micro-benchmarks, each in closed form.
#pragma once

#include "atunner/compile/compiler.h"
#include "atunner/device/calibration.h"
#include "atunner/device/device.h"

namespace atunner {

/// Measures the constants of the time model; takes seconds. `probed` is the device's profile with
/// the rates and latencies that Probe measured. Constants that the GPU does not have (clusters
/// before sm_90) keep their expected values. kInternal if a kernel does not run.
Result<Calibration> Calibrate(TimedDevice& device, Compiler& compiler, const DeviceProfile& probed);

}  // namespace atunner
