// Constants of the time model that no data sheet states: estimated from the profile, or fitted to
// micro-benchmarks of the real GPU (`atunner devices --probe --calibrate`).
#pragma once

#include <string>

#include "atunner/base/result.h"
#include "atunner/model/json/json.h"
#include "atunner/model/value/device_profile.h"

namespace atunner {

struct Calibration {
#define ATUNNER_CALIBRATION(name, unit, fallback, meaning) double name = 0;
#include "atunner/device/calibration.def"
#undef ATUNNER_CALIBRATION
  std::string source;  ///< "not calibrated", or when and on what

  /// The constants that the profile's table suggests.
  static Calibration Expected(const DeviceProfile& profile);
};

Json ToJson(const Calibration& calibration);
/// Every constant must be there, finite and not negative.
Result<Calibration> CalibrationFromJson(const Json& json);

/// The file that `devices --probe` writes for a GPU holds a calibration under this key, if it was
/// made.
inline constexpr const char* kCalibrationKey = "calibration";
/// The calibration in the file of a profile in `folder`, or Expected() if there is none.
/// kInvalidInput for a broken file.
Result<Calibration> LoadCalibration(const std::string& folder, const DeviceProfile& profile);

}  // namespace atunner
