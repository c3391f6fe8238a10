// Matrix products in float32 on tensor cores: operands as pairs of float16 planes (kernels/families/planes.cuh).
#pragma once

#include <memory>

#include "atunner/codegen/matrix_product.h"

namespace atunner {

/// Schedules for `product`, of float32; nullptr where the device has no wgmma, or a is a triangle.
std::unique_ptr<ScheduleTemplate> MakePlanesGemm(const KernelSpec& spec, const DeviceProfile& profile,
                                                 const MatrixProduct& product);

/// `simt`, or schedules for the same product on tensor cores where by the models of both they take less time.
std::unique_ptr<ScheduleTemplate> PlanesOr(std::unique_ptr<ScheduleTemplate> simt, const DeviceProfile& profile,
                                           const MatrixProduct& product);

}  // namespace atunner
