// Measures what a device can do, for the profile that predictions and rooflines use.
#pragma once

#include <string>
#include <vector>

#include "atunner/compile/compiler.h"
#include "atunner/device/device.h"

namespace atunner {

struct ProbedRate {
  std::string name;  ///< "copy bandwidth"
  std::string unit;  ///< "GB/s"
  double measured = 0;
  double stated = 0;  ///< the table's figure; 0 when it has none
};

struct ProbeResult {
  DeviceProfile profile;  ///< the device's with the measured figures in place
  std::vector<ProbedRate> rates;
};

/// Measures the device for a few seconds: medians of event times, at whatever clocks it runs.
/// kInternal if a probe does not run.
Result<ProbeResult> Probe(TimedDevice& device, Compiler& compiler);

}  // namespace atunner
