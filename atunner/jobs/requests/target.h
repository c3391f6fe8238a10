// The device that a job runs for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "atunner/device/calibration.h"
#include "atunner/model/trial/trial.h"
#include "atunner/model/value/device_profile.h"

namespace atunner {

/// A device, and whether it is measured or predicted.
struct Target {
  DeviceProfile profile;
  /// Set: kernels are measured on the GPU of this number. Empty: the virtual GPU predicts.
  std::optional<int> real_index;
  /// The constants of the time model: stored by `devices --probe --calibrate`, or expected.
  Calibration calibration;
  Evidence evidence() const { return real_index ? Evidence::kMeasured : Evidence::kPredicted; }
};

/// The name of a device in a request.
struct TargetChoice {
  /// "auto" is the GPU in this machine. A name of the profile table is measured where that GPU is
  /// present, and predicted elsewhere.
  std::string gpu = "auto";
  bool force_virtual = false;  ///< predict, even if the GPU is present
};

/// The devices that judge in parallel. The default is the target alone.
struct DeviceSelection {
  bool all = false;          ///< every GPU of the target's model, or one virtual GPU per two cores
  std::vector<int> numbers;  ///< these devices, each at most once
  bool Empty() const { return !all && numbers.empty(); }
};

}  // namespace atunner
