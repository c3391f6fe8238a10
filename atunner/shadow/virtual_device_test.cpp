#include "atunner/device/profiles.h"
#include "atunner/shadow/shadow_run_test.h"
#include "atunner/vgpu/virtual_gpu.h"

namespace atunner::shadow {

std::unique_ptr<Device> OpenTestDevice() {
  return std::make_unique<vgpu::VirtualGpu>(FindProfile("A100").value(), 2);
}

}  // namespace atunner::shadow
