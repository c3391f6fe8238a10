#include "atunner/device/real_device.h"

#include "atunner/shadow/shadow_run_test.h"

namespace atunner::shadow {

std::unique_ptr<Device> OpenTestDevice() {
  const auto devices = ListRealDevices();
  if (!devices || devices->empty()) return nullptr;
  return OpenRealDevice(devices->front().index).value();
}

}  // namespace atunner::shadow
