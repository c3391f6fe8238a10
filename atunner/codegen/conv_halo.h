// Convolutions on Hopper whose taps are distances between rows of one stretch in shared memory
// (kernels/families/conv_halo.cu).
#pragma once

#include <memory>

#include "atunner/codegen/conv_form.h"

namespace atunner {

/// nullptr where dilated steps of more than one leave rows out, or stretches are too long.
std::unique_ptr<ScheduleTemplate> MakeHaloConv(const KernelSpec& spec, const DeviceProfile& profile);
/// Gradients by the filter of those (kernels/families/conv_filters.cu); nullptr for other tasks and for small groups.
std::unique_ptr<ScheduleTemplate> MakeFilterGradient(const KernelSpec& spec, const DeviceProfile& profile);

}  // namespace atunner
