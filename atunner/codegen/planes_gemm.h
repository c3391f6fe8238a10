// Matrix products in float32 on tensor cores: operands as pairs of float16 planes (kernels/families/planes.cuh).
#pragma once

#include <memory>

#include "atunner/model/device_profile.h"
#include "atunner/model/schedule_template.h"

namespace atunner {

/// Schedules for `spec`, a matmul in float32; nullptr where the device has no wgmma.
std::unique_ptr<ScheduleTemplate> MakePlanesGemm(const KernelSpec& spec, const DeviceProfile& profile);

/// `simt`, or schedules for the same task on tensor cores where by the models of both they take less time.
std::unique_ptr<ScheduleTemplate> PlanesOr(std::unique_ptr<ScheduleTemplate> simt, const DeviceProfile& profile);

}  // namespace atunner
