#include "atunner/device/calibration.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "atunner/base/files.h"
#include "atunner/device/profiles.h"

namespace atunner {

Calibration Calibration::Expected(const DeviceProfile& p) {
  Calibration c;
#define ATUNNER_CALIBRATION(name, unit, fallback, meaning) c.name = fallback;
#include "atunner/device/calibration.def"
#undef ATUNNER_CALIBRATION
  c.source = "not calibrated";
  return c;
}

Json ToJson(const Calibration& calibration) {
  Json json{{"source", calibration.source}};
#define ATUNNER_CALIBRATION(name, unit, fallback, meaning) json[#name] = calibration.name;
#include "atunner/device/calibration.def"
#undef ATUNNER_CALIBRATION
  return json;
}

Result<Calibration> CalibrationFromJson(const Json& json) {
  Calibration c;
  if (!json.is_object()) return Invalid("is no calibration");
#define ATUNNER_CALIBRATION(name, unit, fallback, meaning) \
  if (!json.contains(#name) || !json[#name].is_number())   \
    return Invalid("a calibration lacks '" #name "'");     \
  c.name = json[#name].get<double>();                      \
  if (!std::isfinite(c.name) || c.name < 0)                \
    return Invalid("a calibration's '" #name "' is no constant of a machine");
#include "atunner/device/calibration.def"
#undef ATUNNER_CALIBRATION
  if (json.contains("source") && json["source"].is_string())
    c.source = json["source"].get<std::string>();
  return c;
}

namespace {

/// Converts values measured at one clock to another: SMs and L2 follow the clock, DRAM does not.
Calibration AtClock(Calibration c, double ratio) {
  c.l2_gbps *= ratio;
  c.l2_async_gbps *= ratio;
  c.dram_clk = c.l2_clk + (c.dram_clk - c.l2_clk) * ratio;
  return c;
}

}  // namespace

Result<Calibration> LoadCalibration(const std::string& folder, const DeviceProfile& profile) {
  if (const size_t at = profile.name.find('@'); at != std::string::npos) {
    ATUNNER_TRY(const DeviceProfile boosted, FindProfile(profile.name.substr(0, at)));
    ATUNNER_TRY(Calibration calibration, LoadCalibration(folder, boosted));
    return AtClock(std::move(calibration), profile.clock_ghz / boosted.clock_ghz);
  }
  constexpr size_t kLargest = size_t{1} << 20;
  const Path file = Path(folder) / (profile.name + ".json");
  if (!Exists(file)) return Calibration::Expected(profile);
  ATUNNER_TRY(const std::string text, ReadFile(file, kLargest));
  auto json = ParseJson(text);
  if (!json || !json->is_object())
    return Invalid("is no probed profile", file.string(), "run atunner devices --probe");
  if (!json->contains(kCalibrationKey)) return Calibration::Expected(profile);
  // Constants that the model did not have when this was written are the expected ones.
  Json whole = (*json)[kCalibrationKey];
  if (whole.is_object() && whole.contains("source")) {
    const Json expected = ToJson(Calibration::Expected(profile));
    for (const auto& [name, value] : expected.items()) {
      if (!whole.contains(name)) whole[name] = value;
    }
  }
  auto calibration = CalibrationFromJson(whole);
  if (!calibration)
    return Invalid(calibration.error().what, file.string(),
                   "run atunner devices --probe --calibrate");
  return calibration;
}

}  // namespace atunner
