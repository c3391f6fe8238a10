// Clocks, power and throttling through NVML, opened at run time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "atunner/device/device.h"

namespace atunner {

class Nvml {
 public:
  /// nullptr when there is no NVML: clocks are then unknown, and nothing else changes.
  static std::unique_ptr<Nvml> Open(int device_index);
  ClockState Read() const;
  /// Energy of the whole board since the driver was loaded; nullopt if the board does not count it.
  std::optional<double> EnergyJoules() const;
  /// "580.159.04"
  std::string DriverVersion() const;

 private:
  struct Api;
  std::shared_ptr<Api> api_;
  void* device_ = nullptr;
};

}  // namespace atunner
