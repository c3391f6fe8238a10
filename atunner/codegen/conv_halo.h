// Convolutions on Hopper whose taps are distances between rows of one stretch in shared memory
// (kernels/families/conv_halo.cu).
#pragma once

#include <memory>
#include <optional>

#include "atunner/codegen/conv_form.h"

namespace atunner {

/// The form as rows of a padded image, or, where each phase has one tap, of the image as it lies; nullopt where steps
/// of more than one leave rows out, or where gathering pays more.
std::optional<TensorConvForm> HaloFormOf(const KernelSpec& spec, const DeviceProfile& profile);
std::unique_ptr<ScheduleTemplate> MakeHaloConv(const KernelSpec& spec, const DeviceProfile& profile,
                                               TensorConvForm form);

}  // namespace atunner
