// A real NVIDIA GPU through the driver API, opened at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "atunner/device/device.h"

namespace atunner {

struct RealDeviceInfo {
  int index = 0;
  std::string name;
  DeviceProfile profile;  ///< the table's row, corrected by what the driver reports
  uint64_t memory_bytes = 0;
};

/// GPUs of this machine. kUnavailable says why there is none: no driver, no device.
Result<std::vector<RealDeviceInfo>> ListRealDevices();

/// Opens one with its primary context on the calling thread. A fault of a kernel loses the context:
/// every later call fails, and the process should end.
Result<std::unique_ptr<TimedDevice>> OpenRealDevice(int index);

}  // namespace atunner
